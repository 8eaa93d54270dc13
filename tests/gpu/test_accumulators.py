"""Accumulators on the device: loads and stores of every layout, against NumPy."""

import numpy as np
import pytest
from numba import cuda

import devmath
from devmath.dtypes import BY_NAME
from tests import accumulator_kernels as kernels
from tests import oracle
from tests.gpu.device_arrays import Twin, on_device

pytestmark = pytest.mark.gpu

#: Products of every variant; extents of whole runs and not.
PRODUCTS = (
    devmath.Gemm(128, 128, 64, "float16"),
    devmath.Gemm(64, 40, 32, "float16", threads=128),
    devmath.Gemm(50, 37, 19, "bfloat16"),
    devmath.Gemm(128, 128, 32, "float32"),
    devmath.Gemm(64, 96, 32, "float32", b_order="col"),
    devmath.Gemm(64, 64, 32, "float32", math="3xtf32"),
    devmath.Gemm(33, 47, 19, "float32"),
    devmath.Gemm(64, 64, 32, "float64"),
    devmath.Gemm(64, 64, 32, "complex64"),
    devmath.Gemm(32, 24, 16, "complex128"),
)
VIEWS = {
    "rows aligned": lambda x, rows, cols: x[8 : rows + 8, 8 : cols + 8],
    "rows beside alignment": lambda x, rows, cols: x[1 : rows + 1, 1 : cols + 1],
    "columns aligned": lambda x, rows, cols: x[8 : cols + 8, 8 : rows + 8].T,
    "columns beside alignment": lambda x, rows, cols: x[1 : cols + 1, 1 : rows + 1].T,
    "clipped": lambda x, rows, cols: x[8 : rows + 5, 8 : cols + 1],
    "clipped by whole runs": lambda x, rows, cols: x[8 : rows // 2 + 8, 8 : cols // 16 * 8 + 8],
    "larger": lambda x, rows, cols: x[8 : rows + 16, 8 : cols + 16],
    "every second row, every third column": lambda x, rows, cols: x[: 2 * rows : 2, : 3 * cols : 3],
    "reversed": lambda x, rows, cols: x[rows - 1 :: -1, cols - 1 :: -1],
}
RESULTS = {"float32": ("float16", "bfloat16", "float32", "float64"), "complex64": ("complex64", "complex128")}


@pytest.fixture(scope="module", params=PRODUCTS, ids=repr)
def mm(request):
    return request.param


@pytest.fixture(scope="module")
def add_product(mm):
    return kernels.add_product(mm)


def results_of(mm):
    name = mm.accumulator_dtype.name
    return RESULTS.get(name, (name,))


@pytest.mark.parametrize("view", VIEWS)
def test_loads_and_stores_of_any_strides(mm, add_product, view, rng):
    for name in results_of(mm):
        dtype = BY_NAME[name].numpy
        a, b = oracle.operands(rng, mm)
        before, after = oracle.normal(rng, (400, 400), dtype), np.full((400, 400), 7, dtype)
        source, target = Twin(before), Twin(after)
        c, d = VIEWS[view](before, mm.m, mm.n), VIEWS[view](after, mm.m, mm.n)
        add_product[1, mm.block_dim](on_device(a), on_device(b), source.view(c), target.view(d))
        shared = d[: mm.m, : mm.n]
        want = oracle.product(a, b)[: shared.shape[0], : shared.shape[1]] + c[: mm.m, : mm.n]
        got = target.fetch()
        stored = VIEWS[view](got, mm.m, mm.n)[: mm.m, : mm.n]
        bound = oracle.GEMM_BOUND[name] + oracle.GEMM_BOUND[mm.accumulator_dtype.name]
        assert oracle.relative_error(stored, want) < bound
        shared[...] = stored  # nothing beside it may differ
        assert np.array_equal(got, after)


def test_past_the_edge_a_load_fills_with_zeros(mm, add_product, rng):
    dtype = mm.accumulator_dtype
    a, b = np.zeros((mm.m, mm.k), mm.dtype), np.zeros((mm.k, mm.n), mm.dtype)
    c = oracle.normal(rng, (mm.m // 2 + 1, mm.n // 2 + 1), dtype)
    want = np.zeros((mm.m, mm.n), dtype)
    want[: c.shape[0], : c.shape[1]] = c
    d = cuda.to_device(np.full_like(want, np.nan))
    add_product[1, mm.block_dim](on_device(a), on_device(b), cuda.to_device(c), d)
    assert np.array_equal(d.copy_to_host(), want)


def test_through_a_tile(mm, rng):
    c = oracle.normal(rng, (mm.m, mm.n), mm.accumulator_dtype)
    d = cuda.device_array_like(c)
    kernels.through_tile(mm)[1, mm.block_dim](cuda.to_device(c), d)
    assert np.array_equal(d.copy_to_host(), c)


def test_reductions(mm, rng):
    dtype = mm.accumulator_dtype
    if np.issubdtype(dtype, np.complexfloating):
        pytest.skip("complex numbers have no order")
    c = oracle.normal(rng, (mm.m, mm.n), dtype)
    c[mm.m // 2, mm.n // 2] = np.nan
    c[0, 0], c[mm.m - 1, mm.n - 1] = np.inf, -np.inf
    rows, cols = cuda.to_device(np.zeros((3, mm.m), dtype)), cuda.to_device(np.zeros((3, mm.n), dtype))
    kernels.reductions(mm)[1, mm.block_dim](cuda.to_device(c), rows, cols)
    for got, axis in ((rows.copy_to_host(), 1), (cols.copy_to_host(), 0)):
        np.testing.assert_array_equal(got[0], c.max(axis=axis))
        np.testing.assert_array_equal(got[1], c.min(axis=axis))
        np.testing.assert_allclose(got[2], c.astype(np.float64).sum(axis=axis), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_conversion(dtype, rng):
    mm, to = devmath.Gemm(50, 40, 16, "float16"), BY_NAME[dtype].numpy
    c = oracle.normal(rng, (mm.m, mm.n), np.float32)
    d, sums = on_device(np.zeros((mm.m, mm.n), to)), cuda.to_device(np.zeros(mm.m))
    kernels.converted(mm, to.type)[1, mm.block_dim](cuda.to_device(c), d, sums)
    got = d.copy_to_host()
    assert np.array_equal(got, c.astype(to))
    np.testing.assert_allclose(sums.copy_to_host(), got.astype(np.float64).sum(axis=1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("threads", [128, 256])
@pytest.mark.parametrize(("first", "second"), [("float32", "float16"), ("float16", "float32"), ("float16", "float16")])
def test_vectors_of_products_that_deal_out_rows_differently(first, second, threads, rng):
    mm, other = devmath.Gemm(128, 64, 32, first, threads=threads), devmath.Gemm(128, 24, 32, second, threads=threads)
    c, e = oracle.normal(rng, (128, 64), np.float32), oracle.normal(rng, (128, 24), np.float32)
    f, d = oracle.normal(rng, (128,), np.float32), cuda.to_device(np.full((128, 24), np.nan, np.float32))
    kernels.vectors(mm, other)[1, mm.block_dim](*map(cuda.to_device, (c, e, f)), d)
    s, t = c.astype(np.float64).sum(axis=1), e.astype(np.float64).sum(axis=0)
    assert oracle.relative_error(d.copy_to_host(), ((s * f + s) * f)[:, None] + t) < 1e-5


def test_softmax_of_rows(mm, rng):
    dtype = mm.accumulator_dtype
    if np.issubdtype(dtype, np.complexfloating):
        pytest.skip("complex numbers have no order")
    c = oracle.normal(rng, (mm.m, mm.n), dtype)
    d = cuda.to_device(np.full_like(c, np.nan))
    kernels.softmax_rows(mm)[1, mm.block_dim](cuda.to_device(c), d)
    powers = np.exp(c.astype(np.float64) - c.max(axis=1, keepdims=True))
    assert oracle.relative_error(d.copy_to_host(), powers / powers.sum(axis=1, keepdims=True)) < 1e-6


@pytest.mark.parametrize(
    ("first", "second", "m", "n", "k", "threads"),
    [
        ("float16", "float16", 64, 64, 64, 128),  # wgmma on sm_90: A in registers
        ("bfloat16", "bfloat16", 128, 48, 96, 256),
        ("float16", "float16", 200, 64, 64, 128),  # several passes along m
        ("float16", "float16", 50, 20, 19, 32),  # mma.sync, one warp: A in registers
        ("float64", "float64", 32, 16, 24, 32),
        ("float16", "float16", 33, 64, 80, 128),  # through shared memory from here on
        ("float32", "float16", 64, 64, 48, 128),
        ("float16", "float32", 128, 64, 48, 256),
        ("float32", "float32", 33, 47, 19, 96),
        ("complex64", "complex64", 33, 24, 16, 64),
    ],
)
def test_an_accumulator_is_the_operand_of_the_next_product(first, second, m, n, k, threads, rng):
    inner, outer = devmath.Gemm(m, k, 32, first, threads=threads), devmath.Gemm(m, n, k, second, threads=threads)
    a, b0 = oracle.operands(rng, inner)
    _, b1 = oracle.operands(rng, outer)
    e = cuda.to_device(np.full((m, n), np.nan, outer.accumulator_dtype))
    middle = oracle.product(a, b0)
    if not np.iscomplexobj(middle):
        middle = np.maximum(middle, 0)
    kernels.chained(inner, outer)[1, inner.block_dim](*map(on_device, (a, b0, b1)), e)
    want = 2 * oracle.product(middle.astype(outer.dtype), b1)
    assert oracle.relative_error(e.copy_to_host(), want) < (2e-3 if outer.dtype.itemsize == 2 else 1e-5)


@pytest.mark.parametrize("mm", kernels.BATCHED, ids=repr)
def test_accumulators_of_a_batch(mm, rng):
    count = 3 * mm.gemms_per_block + 1
    a, b = oracle.normal(rng, (count, mm.m, mm.k), mm.dtype), oracle.normal(rng, (count, mm.k, mm.n), mm.dtype)
    c = oracle.normal(rng, (count, mm.m, mm.n), mm.accumulator_dtype)
    d = cuda.to_device(np.full_like(c, np.nan))
    kernels.batch(mm)[mm.grid(count), mm.block_dim](*map(on_device, (a, b, c)), d)
    want = oracle.product(a, b) + c
    want = want - want.sum(axis=2, keepdims=True) - want.sum(axis=1, keepdims=True)
    assert oracle.relative_error(d.copy_to_host(), want) < 1e-5
