"""Rows and columns of fragments reduced: the C++ header as plain C++, against NumPy."""

import ctypes
import subprocess

import numpy as np
import pytest
from tile_block import HERE, INCLUDE, random_elements

from devmath.dtypes import BY_NAME
from devmath.lto import gemm_fma, gemm_mma_f64, gemm_mma_sync, gemm_wgmma
from devmath.lto.tile_source import element_text, fragment_text
from tests.problems import problem


def fragment_of(variant, m, n, dtype, threads):
    """Return the fragment of a product as a variant plans it."""
    return variant.plan(problem(m, n, 16, dtype, threads=threads)).fragment


# (fragment, its dtype, threads of the block)
CASES = [
    (fragment_of(gemm_mma_sync, 64, 96, "float16", 64), "float32", 64),
    (fragment_of(gemm_mma_sync, 50, 37, "float16", 128), "float32", 128),
    (fragment_of(gemm_mma_sync, 16, 104, "float16", 384), "float16", 384),
    (fragment_of(gemm_wgmma, 128, 128, "float16", 256), "float32", 256),
    (fragment_of(gemm_wgmma, 64, 256, "bfloat16", 256), "bfloat16", 256),
    (fragment_of(gemm_mma_f64, 64, 64, "float64", 128), "float64", 128),
    (fragment_of(gemm_fma, 64, 64, "float32", 128), "float32", 128),
    (fragment_of(gemm_fma, 33, 47, "float32", 96), "float32", 96),
    (fragment_of(gemm_fma, 16, 16, "complex64", 96), "complex64", 96),
    (fragment_of(gemm_fma, 1, 5, "float64", 32), "float64", 32),
    (fragment_of(gemm_mma_sync, 50, 40, "int8", 128), "int32", 128),
    (fragment_of(gemm_mma_sync, 64, 32, "float16", 64), "float8_e4m3fn", 64),
]
IDS = [f"{i}-{f.rows}x{f.cols}-{f.size}-{dtype}-{threads}" for i, (f, dtype, threads) in enumerate(CASES)]
CASE = pytest.mark.parametrize("case", range(len(CASES)), ids=IDS)
LARGE = 2**28
OPERATIONS = {"max": np.max, "min": np.min, "sum": np.sum}
DESCENDING = pytest.mark.parametrize("descending", [False, True])
# Two fragments of the same rows, dealt out in different ways.
REDISTRIBUTED = [
    (fragment_of(gemm_wgmma, 128, 64, "float16", 256), fragment_of(gemm_mma_sync, 128, 40, "float16", 256), 256),
    (fragment_of(gemm_fma, 33, 47, "float32", 64), fragment_of(gemm_mma_sync, 33, 8, "float16", 64), 64),
]


def value_of(dtype):
    return BY_NAME[BY_NAME[dtype].accumulator]


def operations_of(dtype):
    return ["sum"] if BY_NAME[dtype].is_complex else list(OPERATIONS)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Functions max0_0, max0_1 (along rows, along columns), ... for all cases."""
    lines = ['#include "fragment_block.hpp"', "using namespace devmath;"]

    def define(name, function, threads, pointers):
        arguments = ", ".join(pointer.split()[-1].lstrip("*") for pointer in pointers)
        parameters = ", ".join(pointers)
        call = f"{function}({threads}, descending, {arguments})"
        lines.append(f'extern "C" void {name}(int descending, {parameters}) {{ {call}; }}')

    for i, (fragment, dtype, threads) in enumerate(CASES):
        types = f"{element_text(BY_NAME[dtype])}, {element_text(value_of(dtype))}"
        for axis, seen in enumerate((fragment, fragment.transposed)):
            for operation in operations_of(dtype):
                template = f"{operation.capitalize()}, {fragment_text(seen)}, {types}"
                pointers = ("const void* fragments", "void* vectors", "void* smem")
                define(f"{operation}{i}_{axis}", f"reduce_rows_by_block<{template}>", threads, pointers)
    for i, (source, target, threads) in enumerate(REDISTRIBUTED):
        function = f"redistribute_rows_by_block<{fragment_text(source)}, {fragment_text(target)}, float>"
        define(f"redistribute{i}", function, threads, ("const void* from", "void* to", "void* smem"))
    folder = tmp_path_factory.mktemp("reductions")
    source, output = folder / "functions.cpp", folder / "functions.so"
    source.write_text("\n".join(lines))
    flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-shared", "-fPIC"]
    subprocess.run(["g++", *flags, f"-I{INCLUDE}", f"-I{HERE}", source, "-o", output], check=True)
    return ctypes.CDLL(str(output))


def random_tile(fragment, dtype):
    """Return random elements of a fragment's tile, up to a million where they are integers."""
    scale = 2**19 if BY_NAME[dtype].is_integer else 1
    elements = random_elements(
        np.dtype(np.complex128) if BY_NAME[dtype].is_complex else np.dtype(np.float64), (fragment.rows, fragment.cols)
    )
    return (scale * elements).astype(BY_NAME[dtype].numpy)


def call(function, descending, *arrays):
    function(int(descending), *(ctypes.c_void_p(x.ctypes.data) for x in arrays))


def deal_out(fragment, threads, tile, outside):
    """Return the registers of all threads that hold a tile; registers outside it hold `outside`."""
    at = np.indices((threads, fragment.size))
    inside = fragment.in_bounds(*at)
    registers = np.full(inside.shape, outside, tile.dtype)
    registers[inside] = tile[fragment.row(*at)[inside], fragment.col(*at)[inside]]
    return registers


def rows_of_slots(fragment, threads):
    """Return the row of every slot of every thread."""
    thread, slot = np.indices((threads, fragment.row_of_register.count))
    return fragment.row(thread, fragment.row_of_register.holder(slot))


def scratch(fragment, dtype):
    """Shared memory of just the bytes that are promised, full of numbers that no result may depend on."""
    size = fragment.warps_of_row * fragment.rows_reached if fragment.warps_of_row > 1 else 0
    return np.full(size + 1, LARGE, dtype.numpy)


@CASE
@DESCENDING
@pytest.mark.parametrize("axis", [0, 1], ids=["rows", "columns"])
def test_every_row_is_reduced_in_every_thread_that_holds_some_of_it(library, case, axis, descending):
    fragment, dtype, threads = CASES[case]
    tile = random_tile(fragment, dtype)
    seen, tile = (fragment, tile) if axis == 0 else (fragment.transposed, tile.T)
    value, rows = value_of(dtype), rows_of_slots(seen, threads)
    for operation in operations_of(dtype):
        # Whatever took part from outside would show.
        outside = LARGE if value.is_integer else np.nan
        registers, smem = deal_out(seen, threads, tile, outside), scratch(seen, value)
        vectors = np.full((2, *rows.shape), 7, value.numpy)
        call(getattr(library, f"{operation}{case}_{axis}"), descending, registers, vectors, smem)
        exists = rows < seen.rows
        want = OPERATIONS[operation](tile.astype(np.complex128 if value.is_complex else np.float64), axis=1)
        assert smem[-1] == LARGE
        for doubled, got in enumerate(vectors):
            error = np.abs(got[exists] - (1 + doubled) * want[rows[exists]])
            assert error.max() < 1e-5 * tile.shape[1] if operation == "sum" else error.max() == 0


@pytest.mark.parametrize("case", [i for i, (_, dtype, _) in enumerate(CASES) if not BY_NAME[dtype].is_integer])
def test_a_nan_spoils_its_row_and_no_other(library, case):
    fragment, dtype, threads = CASES[case]
    tile = random_tile(fragment, dtype)
    tile[-1, tile.shape[1] // 2] = np.nan
    rows, value = rows_of_slots(fragment, threads), value_of(dtype)
    for operation in operations_of(dtype):
        vectors = np.full((2, *rows.shape), 7, value.numpy)
        registers = deal_out(fragment, threads, tile, 0)
        call(getattr(library, f"{operation}{case}_0"), False, registers, vectors, scratch(fragment, value))
        exists = rows < fragment.rows
        assert np.array_equal(np.isnan(vectors[0][exists]), rows[exists] == fragment.rows - 1)


@pytest.mark.parametrize("case", [0, 6])
def test_infinities_are_the_largest_and_the_least(library, case):
    fragment, dtype, threads = CASES[case]
    tile = np.full((fragment.rows, fragment.cols), -np.inf, BY_NAME[dtype].numpy)
    tile[3, 5] = np.inf
    rows, value = rows_of_slots(fragment, threads), value_of(dtype)
    vectors = np.full((2, *rows.shape), 7, value.numpy)
    call(
        getattr(library, f"max{case}_0"), False, deal_out(fragment, threads, tile, 0), vectors, scratch(fragment, value)
    )
    assert np.array_equal(vectors[0], np.where(rows == 3, np.inf, -np.inf))


@DESCENDING
@pytest.mark.parametrize("case", range(len(REDISTRIBUTED)))
def test_values_are_dealt_out_anew(library, case, descending):
    source, target, threads = REDISTRIBUTED[case]
    values = random_elements(np.dtype(np.float32), source.rows)
    held, wanted = rows_of_slots(source, threads), rows_of_slots(target, threads)
    vectors = np.where(held < source.rows, values[held % source.rows], np.float32(np.nan))
    got, smem = np.full(wanted.shape, 7, np.float32), np.zeros(source.rows, np.float32)
    call(getattr(library, f"redistribute{case}"), descending, vectors, got, smem)
    assert np.array_equal(got, np.where(wanted < target.rows, values[wanted % target.rows], np.float32(0)))
