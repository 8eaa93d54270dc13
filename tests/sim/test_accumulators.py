"""Accumulators in whole kernels: loads, and the refusals of them."""

import ml_dtypes
import numpy as np
import pytest
from numba import cuda

import devmath
from tests import accumulator_kernels as kernels
from tests.cases import GEMM_CASES
from tests.oracle import GEMM_BOUND, normal, operands, product, relative_error

SMALL = [case for case in GEMM_CASES if case.small and case.m * case.n > 1]


@pytest.fixture
def rng():
    return np.random.default_rng()


@pytest.mark.parametrize("case", SMALL, ids=str)
def test_a_product_is_added_to_what_was_loaded(case, rng):
    mm = case.descriptor()
    a, b = operands(rng, mm)
    c = normal(rng, (mm.m + 3, mm.n + 1), mm.accumulator_dtype)
    d = np.full((mm.m, mm.n), np.nan, mm.accumulator_dtype)
    kernels.add_product(mm)[1, mm.block_dim](a, b, c, d)
    assert relative_error(d, c[: mm.m, : mm.n] + product(a, b)) < GEMM_BOUND[d.dtype.name]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_a_load_converts_and_fills_with_zeros(dtype, rng):
    mm = devmath.Gemm(16, 24, 8, np.float32)
    a, b = np.zeros((16, 8), np.float32), np.zeros((8, 24), np.float32)
    c = cuda.to_device(normal(rng, (24, 20), dtype))[::2, ::-1]
    d = np.full((16, 24), np.nan, np.float32)
    kernels.add_product(mm)[1, mm.block_dim](a, b, c, d)
    np.testing.assert_array_equal(d[:12, :20], c.copy_to_host().astype(np.float32))
    assert not d[12:].any()
    assert not d[:, 20:].any()


@pytest.mark.parametrize("case", SMALL, ids=str)
def test_accumulators_and_tiles(case, rng):
    mm = case.descriptor()
    c = normal(rng, (mm.m, mm.n), mm.c_dtype)
    d = np.full_like(c, np.nan)
    kernels.through_tile(mm)[1, mm.block_dim](c, d)
    np.testing.assert_array_equal(d, c)


def test_a_load_from_a_tile_that_others_wrote_needs_a_wait():
    mm = devmath.Gemm(16, 16, 8, np.float32)
    other = devmath.Gemm(16, 16, 8, np.float32, b_order="col", threads=mm.threads)
    assert mm.plan.fragment != other.plan.fragment

    @cuda.jit
    def kernel():
        tile = devmath.shared(mm.c)
        devmath.store(devmath.accumulator(mm), tile)
        devmath.load(tile, devmath.accumulator(other))

    with pytest.raises(devmath.SimulationError, match=r"devmath\.wait\(\) must come between"):
        kernel[1, mm.block_dim]()
