"""Accumulators in whole kernels: loads, and the refusals of them."""

import ml_dtypes
import numpy as np
import pytest
from numba import cuda
from numba.core.errors import TypingError

import devmath
from tests import accumulator_kernels as kernels
from tests.cases import GEMM_CASES
from tests.oracle import GEMM_BOUND, normal, operands, product, relative_error, unset

SMALL = [case for case in GEMM_CASES if case.small and case.m * case.n > 1]


@pytest.fixture
def rng():
    return np.random.default_rng()


@pytest.mark.parametrize("case", SMALL, ids=str)
def test_a_product_is_added_to_what_was_loaded(case, rng):
    mm = case.descriptor()
    a, b = operands(rng, mm)
    c = normal(rng, (mm.m + 3, mm.n + 1), mm.accumulator_dtype)
    d = unset((mm.m, mm.n), mm.accumulator_dtype)
    kernels.add_product(mm)[1, mm.block_dim](a, b, c, d)
    assert relative_error(d, c[: mm.m, : mm.n] + product(a, b, mm)) < GEMM_BOUND[d.dtype.name]


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
    d = unset(c.shape, c.dtype)
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


def test_softmax_of_rows(rng):
    mm = devmath.Gemm(33, 47, 8, np.float32)
    c, d = normal(rng, (33, 47), np.float32), np.full((33, 47), np.nan, np.float32)
    kernels.softmax_rows(mm)[1, mm.block_dim](c, d)
    powers = np.exp(c.astype(np.float64) - c.max(axis=1, keepdims=True))
    assert relative_error(d, powers / powers.sum(axis=1, keepdims=True)) < 1e-6


@pytest.mark.parametrize("case", [case for case in SMALL if not case.dtype.startswith("complex")], ids=str)
def test_reductions(case, rng):
    mm = case.descriptor()
    c = normal(rng, (mm.m, mm.n), mm.accumulator_dtype)
    if mm.accumulator_dtype.kind == "f":
        c[mm.m // 2, mm.n // 2] = np.nan
    wide = np.result_type(c.dtype, np.float32)  # sums of 16-bit elements are float32
    rows, cols = np.zeros((3, mm.m), wide), np.zeros((3, mm.n), wide)
    kernels.reductions(mm)[1, mm.block_dim](c, rows, cols)
    for got, axis in ((rows, 1), (cols, 0)):
        np.testing.assert_array_equal(got[0], c.max(axis=axis))
        np.testing.assert_array_equal(got[1], c.min(axis=axis))
        np.testing.assert_allclose(got[2], c.astype(np.float64).sum(axis=axis), rtol=1e-5, atol=1e-4)


def test_sums_of_integers_wrap_around(rng):
    mm = devmath.Gemm(16, 24, 32, np.int8)
    c = rng.integers(-(2**31), 2**31, (16, 24), np.int32)
    rows, cols = np.zeros((3, 16), np.int32), np.zeros((3, 24), np.int32)
    kernels.reductions(mm)[1, mm.block_dim](c, rows, cols)
    np.testing.assert_array_equal(rows, [c.max(axis=1), c.min(axis=1), c.sum(axis=1, dtype=np.int32)])
    np.testing.assert_array_equal(cols, [c.max(axis=0), c.min(axis=0), c.sum(axis=0, dtype=np.int32)])


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
def test_elements_of_float8_are_float32_in_kernel_code(dtype, rng):
    mm = devmath.Gemm(16, 24, 32, dtype)

    @cuda.jit(device=True)
    def halve(x, row, col):
        return np.float32(0.5) * x

    @cuda.jit
    def kernel(c, d):
        acc = devmath.accumulator(mm)
        devmath.load(c, acc)
        narrow = devmath.convert(acc, mm.dtype)
        devmath.apply(halve, narrow)
        for i in range(narrow.size):
            narrow[i] = narrow[i] + narrow[i]
        devmath.store(narrow, d)

    c, d = normal(rng, (16, 24), np.float32), np.zeros((16, 24), np.float32)
    kernel[1, mm.block_dim](c, d)
    np.testing.assert_array_equal(d, (c.astype(dtype).astype(np.float32) / 2).astype(dtype).astype(np.float32) * 2)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_conversion(dtype, rng):
    mm = devmath.Gemm(33, 24, 8, np.float32)
    c = normal(rng, (33, 24), np.float32)
    d, sums = np.zeros((33, 24), dtype), np.zeros(33, np.float64)
    kernels.converted(mm, dtype)[1, mm.block_dim](c, d, sums)
    np.testing.assert_array_equal(d, c.astype(dtype))
    np.testing.assert_allclose(sums, d.astype(np.float64).sum(axis=1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("b_order", ["row", "col"])
def test_vectors_of_products_that_deal_out_rows_differently(b_order, rng):
    first = devmath.Gemm(24, 40, 8, np.float32, b_order=b_order, threads=64)
    second = devmath.Gemm(24, 9, 8, np.float16, threads=64)
    c, e = normal(rng, (24, 40), np.float32), normal(rng, (24, 9), np.float32)
    f, d = normal(rng, (24,), np.float32), np.full((24, 9), np.nan, np.float32)
    kernels.vectors(first, second)[1, first.block_dim](c, e, f, d)
    s, t = c.astype(np.float64).sum(axis=1), e.astype(np.float64).sum(axis=0)
    assert relative_error(d, ((s * f + s) * f)[:, None] + t) < 1e-5


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (devmath.Gemm(32, 33, 16, np.float16, threads=64), devmath.Gemm(32, 24, 33, np.float16, threads=64)),
        (devmath.Gemm(16, 20, 9, "bfloat16", threads=32), devmath.Gemm(16, 8, 20, "bfloat16", threads=32)),
        (devmath.Gemm(33, 20, 9, np.float32, threads=64), devmath.Gemm(33, 8, 20, np.float16, threads=64)),
        (devmath.Gemm(17, 12, 9, np.float64, threads=64), devmath.Gemm(17, 8, 12, np.float64, threads=64)),
        (devmath.Gemm(17, 12, 9, np.float16, threads=64), devmath.Gemm(17, 8, 12, np.float32, threads=64)),
    ],
    ids=str,
)
def test_an_accumulator_is_the_operand_of_the_next_product(first, second, rng):
    a, b0 = operands(rng, first)
    _, b1 = operands(rng, second)
    e = np.full((second.m, second.n), np.nan, second.accumulator_dtype)
    kernels.chained(first, second)[1, first.block_dim](a, b0, b1, e)
    middle = np.maximum(product(a, b0), 0).astype(second.dtype)
    assert relative_error(e, 2 * product(middle, b1)) < 2e-3  # few elements of the middle round to a neighbour


def test_registers_are_the_same_at_each_run_of_a_line(rng):
    mm = devmath.Gemm(16, 16, 8, np.float32)

    @cuda.jit
    def kernel(c, d):
        acc = devmath.accumulator(mm)
        devmath.load(c, acc)
        for j in range(2):
            vector = devmath.row_vector(mm, float(j + 1))
            if j == 0:
                kept = vector
        for i in range(acc.size):
            acc[i] = kept[i]
        devmath.store(acc, d)

    d = np.zeros((16, 16), np.float32)
    kernel[1, mm.block_dim](normal(rng, (16, 16), np.float32), d)
    assert (d == 2).all()  # as on a GPU: both names are of the same registers


@pytest.mark.parametrize("mm", kernels.BATCHED, ids=str)
def test_accumulators_of_a_batch(mm, rng):
    count = mm.gemms_per_block + 1
    a, b = normal(rng, (count, mm.m, mm.k), mm.dtype), normal(rng, (count, mm.k, mm.n), mm.dtype)
    c = normal(rng, (count, mm.m, mm.n), mm.accumulator_dtype)
    d = np.full_like(c, np.nan)
    kernels.batch(mm)[mm.grid(count), mm.block_dim](a, b, c, d)
    want = product(a, b) + c
    want = want - want.sum(axis=2, keepdims=True) - want.sum(axis=1, keepdims=True)
    assert relative_error(d, want) < GEMM_BOUND[d.dtype.name]


def test_other_rows_are_not_dealt_out_anew_among_the_products_of_a_batch():
    mm, wide = devmath.Gemm(8, 8, 8, execution="warp"), devmath.Gemm(8, 32, 8, execution="warp", gemms_per_block=4)

    @cuda.jit
    def kernel():
        devmath.row_vector(wide, devmath.row_vector(mm, 0.0))

    with pytest.raises(
        TypingError, match=r"values must be dealt out as Gemm.* where execution is 'warp', got a row vector"
    ):
        kernel[1, mm.block_dim]()
