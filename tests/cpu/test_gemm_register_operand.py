"""A in registers: which accumulators lie as an operand, and the product of them, as plain C++ with emulated lanes."""

from dataclasses import replace

import numpy as np
import pytest
from gemm_cpu import Case, Program, random, relative_error, wide

from devmath.lto import gemm_fma, gemm_mma_f64, gemm_mma_sync, gemm_wgmma
from devmath.lto.gemm_register_operand import lies_as_operand
from tests.problems import problem

BOUNDS = {"float32": 1e-5, "float64": 1e-13}
TILE, PLAIN = ("registers", "tile"), ("registers", "plain")


class MmaCase(Case):
    """A case of mma.sync."""

    def plan_of(self, asked):
        return (gemm_mma_f64 if self.dtype == "float64" else gemm_mma_sync).plan(asked)


class WgmmaCase(Case):
    """A case of wgmma, whose unit includes the emulation."""

    def plan_of(self, asked):
        return replace(gemm_wgmma.plan(asked), header="wgmma_block.hpp")


CASES = [
    MmaCase(32, 32, 32, "float16", threads=32, forms=TILE),
    MmaCase(16, 24, 64, "bfloat16", "rcr", 32, forms=TILE),
    MmaCase(50, 20, 19, "float16", threads=32, forms=TILE),  # k ends inside a block, rows past the edge
    MmaCase(33, 40, 9, "bfloat16", "rcr", 32, forms=TILE),
    MmaCase(20, 17, 40, "float16", "rcr", 32, forms=PLAIN),
    MmaCase(64, 16, 16, "float16", threads=128, forms=TILE),  # four warps, one above the other
    MmaCase(32, 16, 32, "float64", threads=32, forms=TILE),
    MmaCase(17, 20, 13, "float64", "rcr", 32, forms=TILE),
    MmaCase(20, 9, 7, "float64", threads=32, forms=PLAIN),
    WgmmaCase(64, 64, 64, "float16", "rrr", 128, forms=TILE),
    WgmmaCase(64, 104, 48, "bfloat16", "rcr", 128, forms=TILE),
    WgmmaCase(128, 64, 32, "float16", "rrr", 128, forms=TILE),  # two passes along m
    WgmmaCase(100, 128, 96, "float16", "rcr", 256, forms=TILE),
    WgmmaCase(64, 40, 80, "float16", "rrr", 128, forms=PLAIN),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return Program(tmp_path_factory.mktemp("registers"), CASES)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_product_of_registers_adds_to_the_accumulator(program, case):
    """Registers that hold no element of A are NaN, as is memory around B."""
    assert lies_as_operand(case.a_fragment, case.plan)
    rng = np.random.default_rng()
    a, b = random(rng, case.dtype, case.m, case.k), random(rng, case.dtype, case.k, case.n)
    c = random(rng, case.plan.accumulator.name, case.m, case.n)
    got = program.register_form(case, a, b, c)
    assert relative_error(got, wide(c) + wide(a) @ wide(b)) < BOUNDS[case.plan.accumulator.name]


def fragment(variant, m, k, dtype, threads):
    return variant.plan(problem(m, k, 16, dtype, threads=threads)).fragment


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (fragment(gemm_mma_sync, 64, 64, "float16", 128), (gemm_mma_sync, 64, 64, 64, "float16", 128)),  # shared rows
        (fragment(gemm_mma_sync, 32, 32, "float16", 32), (gemm_mma_sync, 32, 32, 32, "int8", 32)),  # four in a register
        (fragment(gemm_mma_sync, 64, 32, "float16", 128), (gemm_wgmma, 64, 64, 32, "float16", 128)),
        (fragment(gemm_wgmma, 128, 64, "float16", 256), (gemm_wgmma, 128, 64, 64, "float16", 512)),
        (fragment(gemm_fma, 32, 32, "float32", 64), (gemm_fma, 32, 32, 32, "float32", 64)),
        (fragment(gemm_fma, 64, 32, "float32", 128), (gemm_wgmma, 64, 64, 32, "float16", 128)),
    ],
)
def test_others_lie_differently(first, second):
    variant, m, n, k, dtype, threads = second
    assert not lies_as_operand(first, variant.plan(problem(m, n, k, dtype, threads=threads)))
