"""Products of 8-bit numbers: every mix, order and way of loading, exact integers, every float8 number, extremes."""

import functools
from itertools import product

import ml_dtypes
import numpy as np
import pytest

import devmath
from tests import kernels, oracle
from tests.gpu.device_arrays import Output, Twin, on_device

pytestmark = pytest.mark.gpu

INTEGER = ("int8", "uint8")
FLOAT8 = (np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2))
MIXES = [*product(INTEGER, INTEGER), *product(FLOAT8, FLOAT8)]
ORDERS = tuple(product(("row", "col"), repeat=2))
# Whole instructions, tails of k of one, of a half and one beyond, tiles that are no multiples of blocks.
SIZES = ((64, 64, 128), (50, 37, 1), (33, 47, 19), (17, 9, 33))

kernel_of = functools.cache(kernels.gemm_accumulator)


def accumulated(mm, a, b):
    """A @ B by the accumulator form, from arrays as `Twin` takes them."""
    c = Output((mm.m, mm.n), mm.accumulator_dtype)
    kernel_of(mm)[1, mm.block_dim](a, b, c.device)
    return c.fetch()


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize(("a_dtype", "b_dtype"), MIXES, ids=str)
def test_every_mix(a_dtype, b_dtype, size, rng):
    mm = devmath.Gemm(*size, a_dtype, b_dtype=b_dtype)
    for depth in (mm.k, 2 * mm.k + 3):
        a, b = oracle.operands(rng, mm, depth)
        got = accumulated(mm, on_device(a), on_device(b))
        assert oracle.gemm_error(got, oracle.product(a, b)) < oracle.gemm_bound(mm, got.dtype)


@pytest.mark.parametrize(("a_order", "b_order"), ORDERS)
@pytest.mark.parametrize("dtype", ["int8", "float8_e5m2"])
def test_every_order(dtype, a_order, b_order, rng):
    """Arrays that lie as the orders say, which is what they are for, and all others."""
    mm = devmath.Gemm(128, 96, 48, dtype, a_order=a_order, b_order=b_order)
    a, b = oracle.operands(rng, mm)
    for letters in (("C" if a_order == "row" else "F", "C" if b_order == "row" else "F"), ("C", "F"), ("F", "C")):
        (whole_a, view_a), (whole_b, view_b) = map(lying, (a, b), letters)
        twins = Twin(whole_a), Twin(whole_b)
        got = accumulated(mm, twins[0].view(view_a), twins[1].view(view_b))
        assert oracle.gemm_error(got, oracle.product(a, b)) < oracle.gemm_bound(mm, got.dtype)


def lying(array, letter):
    """A contiguous array, and the view of it that is `array` with rows ("C") or columns ("F") in memory."""
    whole = np.ascontiguousarray(array if letter == "C" else array.T)
    return whole, whole if letter == "C" else whole.T


@pytest.mark.parametrize("dtype", [*INTEGER, *FLOAT8], ids=str)
@pytest.mark.parametrize("shift", [0, 1, 4])
@pytest.mark.parametrize(("rows_first_a", "rows_first_b"), list(product((True, False), repeat=2)))
def test_arrays_lie_either_way_and_start_anywhere(dtype, shift, rows_first_a, rows_first_b, rng):
    """Strides and alignment choose the way that bytes take into a tile: chunks, four transposed, one by one."""
    for m, n, k in ((64, 64, 64), (45, 27, 21)):
        mm = devmath.Gemm(64, 48, 64, dtype)
        arrays, views = [], []
        for rows, cols, rows_first in ((m, k, rows_first_a), (k, n, rows_first_b)):
            whole = oracle.normal(rng, (144, 144), mm.dtype)
            view = (
                whole[shift : shift + rows, shift : shift + cols]
                if rows_first
                else (whole[shift : shift + cols, shift : shift + rows].T)
            )
            twin = Twin(whole)
            arrays.append((twin, view))
            views.append(twin.view(view))
        c = Output((m, n), mm.accumulator_dtype)
        kernel_of(mm)[1, mm.block_dim](*views, c.device)
        want = oracle.product(arrays[0][1], arrays[1][1])
        got = c.fetch()[: mm.m, : mm.n]
        assert oracle.gemm_error(got, want[: mm.m, : mm.n]) < oracle.gemm_bound(mm, got.dtype)


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
def test_every_float8_number_is_read_multiplied_and_written(dtype):
    every = np.arange(256, dtype=np.uint8).view(dtype).reshape(16, 16)
    mm = devmath.Gemm(16, 16, 16, dtype)
    values, doubled = Output((16, 16), np.float32), Output((16, 16), dtype)
    kernels.tile_elements(mm)[1, mm.block_dim](on_device(every), values.device, doubled.device)
    assert np.array_equal(values.fetch(), every.astype(np.float32), equal_nan=True)
    largest = float(ml_dtypes.finfo(dtype).max)
    want = np.clip(2 * every.astype(np.float64), -largest, largest).astype(dtype)
    assert np.array_equal(doubled.fetch().astype(np.float32), want.astype(np.float32), equal_nan=True)

    finite = np.where(np.isfinite(every.astype(np.float32)), every, dtype.type(0))
    got = accumulated(mm, on_device(finite), on_device(np.eye(16).astype(dtype)))
    assert np.array_equal(got, finite.astype(np.float32))


@pytest.mark.parametrize("k", [33, 64])
@pytest.mark.parametrize(("a_dtype", "b_dtype"), list(product(FLOAT8, FLOAT8)), ids=str)
def test_infinities_and_nan_give_what_float32_gives(a_dtype, b_dtype, k, rng):
    mm = devmath.Gemm(64, 64, k, a_dtype, b_dtype=b_dtype)
    a, b = oracle.operands(rng, mm)
    a[1, 2], a[2, 3], a[3, 4], a[3, 5], a[4, 6] = np.inf, -np.inf, np.inf, np.inf, np.nan
    b[2:7] = 1.0
    b[4, 1], b[5, 2] = -1.0, 0.0
    with np.errstate(invalid="ignore"):
        want = a.astype(np.float32) @ b.astype(np.float32)
    special = ~np.isfinite(want)
    got = accumulated(mm, on_device(a), on_device(b))
    assert np.array_equal(got[special], want[special], equal_nan=True)
    assert np.isfinite(got[~special]).all()


@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
def test_results_too_large_for_float8_saturate(dtype):
    mm = devmath.Gemm(32, 32, 32, dtype, c_dtype=dtype)
    largest = float(ml_dtypes.finfo(dtype).max)
    a, b = np.full((32, 32), largest, dtype), np.diag(np.linspace(-2, 2, 32)).astype(dtype)
    c = Output((32, 32), dtype)
    kernels.gemm_tile(mm)[1, mm.block_dim](np.float32(1), on_device(a), on_device(b), np.float32(0), c.device)
    want = np.clip(oracle.product(a, b), -largest, largest).astype(dtype)
    assert np.array_equal(c.fetch().astype(np.float32), want.astype(np.float32))


@pytest.mark.parametrize("dtype", INTEGER)
def test_integers_of_the_whole_range_wrap_around(dtype, rng):
    mm = devmath.Gemm(64, 48, 80, dtype)
    a, b = oracle.operands(rng, mm)
    a[3], b[:, 5] = np.iinfo(dtype).min, np.iinfo(dtype).max
    c = rng.integers(-(2**31), 2**31, (64, 48)).astype(np.int32)
    out = Output((64, 48), np.int32, fill=c)
    alpha, beta = 2**24 + 1, -(2**20) - 3
    kernels.gemm_tile(mm)[1, mm.block_dim](np.int32(alpha), on_device(a), on_device(b), np.int32(beta), out.device)
    want = alpha * (a.astype(np.int64) @ b.astype(np.int64)) + beta * c.astype(np.int64)
    assert np.array_equal(out.fetch(), want.astype(np.int32))


@pytest.mark.parametrize("dtype", [*INTEGER, *FLOAT8], ids=str)
def test_deep_products(dtype, rng):
    """Sixty-four steps of a loop over k, where the sums of float8 lose what a tensor core drops."""
    mm = devmath.Gemm(128, 128, 64, dtype, b_order="col")
    a, b = oracle.operands(rng, mm, 4096)
    got = accumulated(mm, on_device(a), on_device(b))
    assert oracle.gemm_error(got, oracle.product(a, b)) < 4 * oracle.gemm_bound(mm, got.dtype)
