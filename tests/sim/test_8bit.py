"""Tiles and products of 8-bit numbers in the simulator: what differs from wider ones."""

import ml_dtypes
import numpy as np
import pytest
from numba import cuda

import devmath
from tests import kernels
from tests.oracle import normal, operands, product

FLOAT8 = [np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2)]


@pytest.fixture
def rng():
    return np.random.default_rng()


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
def test_elements_of_a_float8_tile_are_float32_and_saturate(dtype):
    mm = devmath.Gemm(16, 8, 16, dtype)
    a = np.arange(256, dtype=np.uint8).view(dtype).reshape(16, 16)
    values, doubled = np.zeros((16, 16), np.float32), np.zeros((16, 16), dtype)
    kernels.tile_elements(mm)[1, mm.block_dim](a, values, doubled)
    assert np.array_equal(values, a.astype(np.float32), equal_nan=True)
    largest = float(ml_dtypes.finfo(dtype).max)
    want = np.clip(2 * a.astype(np.float64), -largest, largest).astype(dtype)
    assert np.array_equal(doubled.astype(np.float32), want.astype(np.float32), equal_nan=True)


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
def test_results_too_large_for_float8_saturate(dtype):
    mm = devmath.Gemm(8, 8, 8, dtype, c_dtype=dtype)
    a = np.full((8, 8), ml_dtypes.finfo(dtype).max, dtype)
    b = np.diag([1, -1, 0.5, 2, -2, 0, 1, 1]).astype(dtype)
    c = np.zeros((8, 8), dtype)
    kernels.gemm_tile(mm)[1, mm.block_dim](np.float32(1), a, b, np.float32(0), c)
    largest = float(ml_dtypes.finfo(dtype).max)
    assert np.array_equal(c[0].astype(float), largest * np.array([1, -1, 0.5, 1, -1, 0, 1, 1]))


def test_an_accumulator_is_stored_as_float8(rng):
    mm = devmath.Gemm(8, 8, 16, np.float16)
    a, b = operands(rng, mm)
    c = np.zeros((8, 8), ml_dtypes.float8_e4m3fn)
    kernels.gemm_accumulator(mm)[1, mm.block_dim](a, b, c)
    np.testing.assert_allclose(c.astype(float), product(a, b), rtol=2**-3, atol=2**-8)


@pytest.mark.parametrize("stored", [np.int32, np.float32, np.float64])
def test_sums_of_integers_are_stored_as_what_holds_them(stored, rng):
    mm = devmath.Gemm(8, 8, 16, np.int8, b_dtype=np.uint8)
    a, b = operands(rng, mm)
    c = np.zeros((8, 8), stored)
    kernels.gemm_accumulator(mm)[1, mm.block_dim](a, b, c)
    assert np.array_equal(c, product(a, b))


def test_integers_wrap_around(rng):
    mm = devmath.Gemm(8, 8, 16, np.uint8)
    a, b = operands(rng, mm)
    c = normal(rng, (8, 8), np.int32)
    want = (2**24 + 1) * (a.astype(np.int64) @ b.astype(np.int64)) - 2**20 * c.astype(np.int64)
    kernels.gemm_tile(mm)[1, mm.block_dim](np.int32(2**24 + 1), a, b, np.int32(-(2**20)), c)
    assert (abs(want) > 2**31).any()
    assert np.array_equal(c, want.astype(np.int32))


@pytest.mark.parametrize("orders", [("row", "row"), ("col", "col"), ("row", "col")], ids="-".join)
def test_plain_arrays_lie_as_the_descriptor_says(orders, rng):
    """Although tiles of the same descriptor lie with k along their lines."""
    mm = devmath.Gemm(6, 5, 4, np.int8, a_order=orders[0], b_order=orders[1])
    a, b = operands(rng, mm)
    lines_a, lines_b = (x if order == "row" else x.T for x, order in zip((a, b), orders, strict=True))
    (a_lines, a_length), (b_lines, b_length) = lines_a.shape, lines_b.shape
    c = np.zeros((6, 5), np.int32)

    @cuda.jit
    def kernel(a, b, c):
        pa = cuda.shared.array((8, 8), np.int8)
        pb = cuda.shared.array(20, np.int8)
        acc = devmath.accumulator(mm)
        if cuda.threadIdx.x == 0:
            for i in range(a_lines):
                for j in range(a_length):
                    pa[i, j] = a[i, j]
            for i in range(b_lines):
                for j in range(b_length):
                    pb[i * b_length + j] = b[i, j]
        devmath.wait()
        devmath.gemm(mm, pa, pb, acc)
        devmath.store(acc, c)

    kernel[1, mm.block_dim](np.ascontiguousarray(lines_a), np.ascontiguousarray(lines_b), c)
    assert np.array_equal(c, product(a, b))
