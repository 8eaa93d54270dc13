"""Stacks of tiles and loads under way as machine code: what is committed, what is waited for, the memory it takes."""

import re

import numpy as np
import pytest
from numba import cuda
from numba.cuda import types

import devmath
from devmath.lto.arch import ARCHITECTURES
from tests import kernels
from tests.compile.harness import TYPING_ERRORS, array, compile_kernel, link

SMALL = devmath.Gemm(32, 32, 16, "float32")
FFT = devmath.FFT(256)
OUT = types.Array(types.int64, 1, "C")


def matrices(mm):
    return array(mm.dtype), array(mm.dtype), array(mm.c_dtype)


def pending(binary):
    """The numbers of loads that the waits of a kernel leave under way."""
    return set(re.findall(r"cp\.async\.wait_group (\d+);", binary.ptx))


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64"])
def test_a_pipeline_stays_in_registers(dtype, arch):
    mm = devmath.Gemm(64, 64, 16, dtype)
    binary = link(kernels.gemm_pipelined(mm, 3), matrices(mm), arch)
    binary.assert_clean()
    # Each load is one group of copies, of both kinds of arrays that it may meet: two before the loop, two in it.
    assert binary.count("LDGDEPBAR") == 4
    assert pending(binary) == {"2", "0"}


@pytest.mark.parametrize(("dtype", "multiply"), [("float16", "HGMMA"), ("float64", "DMMA"), ("float32", "FFMA")])
def test_a_stage_is_multiplied_as_a_tile_is(dtype, multiply):
    mm = devmath.Gemm(64, 64, 32, dtype)
    plain, staged = (
        link(kernel, matrices(mm), "sm_90a") for kernel in (kernels.gemm_grid(mm), kernels.gemm_double_buffered(mm))
    )
    assert staged.count(multiply) == plain.count(multiply) > 0


def test_the_fence_follows_the_landing():
    ptx = link(kernels.gemm_double_buffered(SMALL), matrices(SMALL), "sm_90a").ptx
    assert re.search(r"cp\.async\.wait_group 2; fence\.proxy\.async\.shared::cta;", ptx)
    assert "fence.proxy" not in link(kernels.gemm_double_buffered(SMALL), matrices(SMALL), "sm_89").ptx


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_a_transform_pipelined_through_tiles(arch):
    binary = link(kernels.fft_pipelined(FFT), (array("complex64"), array("complex64")), arch)
    binary.assert_clean()
    assert pending(binary) == {"0", "1"}


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_memory_of_all_stages(arch):
    mm = devmath.Gemm(64, 64, 64, "float16")
    binary = link(kernels.gemm_pipelined(mm, 4), matrices(mm), arch)
    plan = mm.plan_on(arch)
    size_bytes = 4 * (plan.a.stage_bytes + plan.b.stage_bytes)
    assert size_bytes > 48 * 1024
    assert size_bytes <= binary.shared_bytes + binary.dynamic_bytes <= size_bytes + 1024


def test_stages_beyond_the_architecture_are_refused():
    mm = devmath.Gemm(64, 64, 64, "float32")
    size_bytes = 4 * mm.a.layout.stage_bytes
    with pytest.raises(TYPING_ERRORS, match=rf"must fit the 101376 bytes of .* sm_86 has, got {2 * size_bytes}"):
        compile_kernel(kernels.gemm_pipelined(mm, 4), matrices(mm), "sm_86")


def test_constants_of_a_stack_are_known_while_compiling():
    def kernel(out):
        three, one = devmath.shared(SMALL.a, stages=3), devmath.shared(SMALL.b, 1)
        cuda.local.array(three.stages, np.float32)  # Numba takes nothing but a constant here
        out[0] = 1000003 * (three.stages + len(three) + one.stages + len(one) + three[1].shape[0])

    assert f" {1000003 * (3 + 3 + 1 + 1 + 32)};" in link(cuda.jit(kernel), (OUT,), "sm_90a").ptx


def test_a_stage_is_a_tile_wherever_one_may_be():
    @cuda.jit(device=True)
    def fill(stack, stage, array):
        devmath.load(array, stack[stage])
        return stack[stage ^ 1]

    def kernel(a, c, s):
        stack = devmath.shared(SMALL.c, stages=2)
        other = fill(stack, s, a)
        devmath.wait()
        acc = devmath.accumulator(SMALL)
        acc[0] = stack[s][1, 2]
        devmath.store(acc, other)
        devmath.wait()
        other[0, 0] += 1
        devmath.wait()
        devmath.store(other, c)

    link(cuda.jit(kernel), (array("float32"), array("float32"), types.int32), "sm_90a").assert_clean()


def test_a_tile_where_no_stages_are_asked_for():
    def kernel(a, c):
        tile = devmath.shared(SMALL.c, stages=None)
        devmath.load(a, tile)
        devmath.wait()
        devmath.store(tile, c)

    link(cuda.jit(kernel), (array("float32"), array("float32")), "sm_90a").assert_clean()
