"""Products of whole kernels: every small case, edges and views, scalars, and operands of every kind."""

import ml_dtypes
import numpy as np
import pytest
from numba import cuda

import devmath
from tests import kernels
from tests.cases import GEMM_CASES, ORDERS
from tests.oracle import GEMM_BOUND, factors, normal, operands, product, relative_error, unset

SMALL = [case for case in GEMM_CASES if case.small]


@pytest.fixture
def rng():
    return np.random.default_rng()


def bound(dtype):
    return GEMM_BOUND[np.dtype(dtype).name]


def sums_bound(mm, dtype):
    """The simulator rounds sums that are float16 once a product, all others so finely that it does not show."""
    return max(bound(dtype), 2.0**-9 if mm.accumulator_dtype == np.float16 else 0)


def scalar(mm, value):
    return mm.accumulator_dtype.type(value)


@pytest.mark.parametrize("case", SMALL, ids=str)
def test_tile_form(case, rng):
    mm = case.descriptor()
    a, b = operands(rng, mm)
    c = normal(rng, (mm.m, mm.n), mm.c_dtype)
    alpha, beta = factors(mm)
    want = alpha * product(a, b, mm) + beta * c.astype(mm.accumulator_dtype)
    kernels.gemm_tile(mm)[1, mm.block_dim](alpha, a, b, beta, c)
    assert relative_error(c, want) < 2 * sums_bound(mm, c.dtype)


@pytest.mark.parametrize("case", SMALL, ids=str)
def test_register_form_over_any_depth(case, rng):
    mm = case.descriptor()
    a, b = operands(rng, mm, k=2 * mm.k + 1)
    c = unset((mm.m, mm.n), mm.accumulator_dtype)
    kernels.gemm_accumulator(mm)[1, mm.block_dim](a, b, c)
    assert relative_error(c, product(a, b, mm)) < sums_bound(mm, c.dtype)


@pytest.mark.parametrize("kernel", [kernels.gemm_bias, kernels.gemm_by_hand])
@pytest.mark.parametrize("case", [case for case in SMALL if case.dtype in ("float32", "float16")], ids=str)
def test_epilog(kernel, case, rng):
    mm = case.descriptor()
    a, b = operands(rng, mm)
    bias = normal(rng, (mm.n,), np.float32)
    c = np.full((mm.m, mm.n), np.nan, np.float32)
    kernel(mm)[1, mm.block_dim](a, b, bias, c)
    tolerance = max(1e-4, 16 * sums_bound(mm, c.dtype))
    np.testing.assert_allclose(c, np.maximum(product(a, b, mm) + bias, 0), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["float32", "complex64", "bfloat16"])
def test_beta_zero_never_reads_c(dtype, rng):
    mm = devmath.Gemm(16, 16, 16, dtype)
    a, b = operands(rng, mm)
    c = np.full((16, 16), np.nan, mm.c_dtype)
    kernels.gemm_tile(mm)[1, mm.block_dim](scalar(mm, 1), a, b, scalar(mm, 0), c)
    assert relative_error(c, product(a, b)) < bound(c.dtype)


def test_results_too_large_for_their_type_are_infinite():
    mm = devmath.Gemm(8, 8, 8, np.float16, c_dtype=np.float16)
    a = b = np.full((8, 8), 256, np.float16)
    c = np.zeros((8, 8), np.float16)
    kernels.gemm_tile(mm)[1, mm.block_dim](scalar(mm, 1), a, b, scalar(mm, 0), c)
    assert np.isinf(c).all()


def edge_views(base):
    """Views of a 48 x 48 array on the device, named by what is unusual about them."""
    return {
        "smaller": base[:9, :11],
        "larger": base[:40, :48],
        "empty": base[:0, :16],
        "columns apart": base[:16, :32:2],
        "rows apart": base[:48:3, :16],
        "reversed": base[15::-1, 15::-1],
        "transposed": base.T[:16, :16],
    }


VIEWS = tuple(edge_views(np.zeros((48, 48))))


@pytest.mark.parametrize("view", VIEWS)
def test_load_takes_any_view_and_fills_with_zeros(view, rng):
    mm = devmath.Gemm(16, 16, 16, np.float64)

    @cuda.jit
    def kernel(a, c):
        tile = devmath.shared(mm.a)
        devmath.load(a, tile)
        devmath.wait()
        devmath.store(tile, c)

    a = edge_views(cuda.to_device(normal(rng, (48, 48), np.float64)))[view]
    c = np.full((16, 16), np.nan)
    kernel[1, mm.block_dim](a, c)
    corner = a.copy_to_host()[:16, :16]
    np.testing.assert_array_equal(c[: corner.shape[0], : corner.shape[1]], corner)
    assert np.count_nonzero(c) == corner.size


@pytest.mark.parametrize("form", ["tile", "accumulator"])
@pytest.mark.parametrize("view", VIEWS)
def test_store_touches_nothing_past_the_edge(form, view, rng):
    mm = devmath.Gemm(16, 16, 16, np.float64)
    a, b = operands(rng, mm)
    base = cuda.to_device(np.full((48, 48), np.nan))
    c = edge_views(base)[view]
    if form == "tile":
        kernels.gemm_tile(mm)[1, mm.block_dim](1.0, a, b, 0.0, c)
    else:
        kernels.gemm_accumulator(mm)[1, mm.block_dim](a, b, c)
    stored = c.copy_to_host()[:16, :16]
    np.testing.assert_allclose(stored, (a @ b)[: stored.shape[0], : stored.shape[1]])
    assert np.count_nonzero(~np.isnan(base.copy_to_host())) == stored.size


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_store_rounds_to_the_type_of_the_array(dtype, rng):
    mm = devmath.Gemm(16, 8, 4, np.float32)

    @cuda.jit
    def kernel(a, b, exact, rounded, from_tile):
        sa, sb, sc = devmath.shared(mm.a), devmath.shared(mm.b), devmath.shared(mm.c)
        acc = devmath.accumulator(mm)
        devmath.load(a, sa)
        devmath.load(b, sb)
        devmath.wait()
        devmath.gemm(mm, sa, sb, acc)
        devmath.store(acc, exact)
        devmath.store(acc, rounded)
        devmath.store(acc, sc)
        devmath.wait()
        devmath.store(sc, from_tile)

    a, b = operands(rng, mm)
    exact = np.zeros((16, 8), np.float32)
    rounded, from_tile = np.zeros((2, 16, 8), dtype)
    kernel[1, mm.block_dim](a, b, exact, rounded, from_tile)
    assert relative_error(exact, product(a, b)) < bound(np.float32)
    np.testing.assert_array_equal(rounded, exact.astype(dtype))
    np.testing.assert_array_equal(from_tile, rounded)


@pytest.mark.parametrize("width", [32, 33, 48])
def test_two_products_chained_through_a_tile(width, rng):
    first = devmath.Gemm(32, width, 16, np.float16, threads=64)
    second = devmath.Gemm(32, 24, width, np.float16, threads=64)
    a, b0 = operands(rng, first)
    _, b1 = operands(rng, second)
    e = np.full((32, 24), np.nan, np.float32)
    kernels.gemm_chained(first, second)[1, first.block_dim](a, b0, b1, e)
    middle = np.maximum(product(a, b0), 0).astype(np.float16)
    assert relative_error(e, product(middle, b1)) < 1e-3


@pytest.mark.parametrize("order", ["row", "col"])
def test_plain_arrays_as_operands(order, rng):
    """A and C are 2-D with a leading dimension, B is dense, the accumulators are a local array."""
    mm = devmath.Gemm(6, 5, 4, np.float32, a_order=order, b_order=order, c_order=order)
    as_memory_lies = np.asarray if order == "row" else np.transpose
    a, b = operands(rng, mm)
    lines_a, lines_b = as_memory_lies(a), as_memory_lies(b)
    c, d = np.full(as_memory_lies(np.empty((6, 5))).shape, np.nan, np.float32), np.full((6, 5), np.nan, np.float32)

    @cuda.jit
    def kernel(a, b, c, d):
        pa = cuda.shared.array((7, 8), np.float32)
        pb = cuda.shared.array(20, np.float32)
        pc = cuda.shared.array((6, 6), np.float32)
        sums, place = cuda.local.array(mm.plan.fragment.size, np.float32), devmath.accumulator(mm)
        rank = cuda.threadIdx.x
        if rank < a.shape[0]:
            for i in range(a.shape[1]):
                pa[rank, i] = a[rank, i]
        if rank < 20:
            pb[rank] = b[rank]
        for i in range(place.size):
            sums[i] = 0
        devmath.wait()
        devmath.gemm(mm, 1.0, pa, pb, 0.0, pc)
        devmath.gemm(mm, pa, pb, sums)
        devmath.wait()
        if rank < c.shape[0]:
            for i in range(c.shape[1]):
                c[rank, i] = pc[rank, i]
        for i in range(place.size):
            if place.in_bounds(i):
                d[place.row(i), place.col(i)] = sums[i]

    kernel[1, mm.block_dim](np.ascontiguousarray(lines_a), lines_b.ravel(), c, d)
    assert relative_error(d, product(a, b)) < bound(np.float32)
    np.testing.assert_array_equal(as_memory_lies(c), d)


@pytest.mark.parametrize("view", [False, True])
@pytest.mark.parametrize("orders", ORDERS, ids="".join)
def test_plain_arrays_with_longer_lines(orders, view, rng):
    mm = devmath.Gemm(6, 5, 4, np.float32, *orders)
    (a, b), c = operands(rng, mm), normal(rng, (mm.m, mm.n), np.float32)
    want = 2 * product(a, b) - 0.5 * c
    a, b, c = (np.ascontiguousarray(x.T if order == "col" else x) for x, order in zip((a, b, c), orders, strict=True))
    kernels.gemm_plain(mm, view)[1, mm.block_dim](np.float32(2), a, b, np.float32(-0.5), c)
    assert relative_error(c.T if orders[2] == "col" else c, want) < 2 * bound(np.float32)


@pytest.mark.parametrize("order", ["row", "col"])
def test_elements_of_a_tile(order, rng):
    mm = devmath.Gemm(8, 8, 8, np.float16, a_order=order)

    @cuda.jit
    def kernel(a, c):
        tile = devmath.shared(mm.a)
        for i in range(cuda.threadIdx.x, 8, mm.threads):
            for j in range(tile.shape[1]):
                tile[i, j] = 2 * a[i, j]
        devmath.wait()
        if cuda.threadIdx.x == 5:
            tile[3, 4] += 1
        devmath.wait()
        devmath.store(tile, c)

    a = normal(rng, (8, 8), np.float16)
    c = np.zeros_like(a)
    kernel[1, mm.block_dim](a, c)
    want = 2 * a
    want[3, 4] += np.float16(1)
    np.testing.assert_array_equal(c, want)


def test_tiles_of_a_loop_and_of_a_device_function_are_one():
    mm = devmath.Gemm(4, 4, 4)

    @cuda.jit(device=True)
    def mine():
        return devmath.shared(mm.a)

    @cuda.jit
    def kernel(count):
        addresses = set()
        for _ in range(3):
            addresses.add(id(devmath.shared(mm.a)))
        addresses.add(id(mine()))
        addresses.add(id(mine()))
        first, second = devmath.shared(mm.a), devmath.shared(mm.a)
        addresses.add(id(first))
        addresses.add(id(second))
        count[cuda.threadIdx.x] = len(addresses)

    count = np.zeros(mm.threads, np.int64)
    kernel[1, mm.block_dim](count)
    assert (count == 4).all()


@pytest.mark.parametrize("size", [8, 16])
def test_device_functions_of_one_factory_have_tiles_of_their_own(size, rng):
    mm = devmath.Gemm(size, size, size, threads=32)
    x, y = normal(rng, (2, size + 3, size + 3), np.float32), normal(rng, (2, size + 3, size + 3), np.float32)
    total, result = np.full((2, size, size), np.nan, np.float32), np.full((2, size, size), np.nan, np.float32)
    kernels.tiles_in_device_functions(mm)[2, mm.block_dim](x, y, total, result)
    x, y = x[:, :size, :size], y[:, :size, :size]
    assert np.array_equal(total, x + 2 * y)
    assert relative_error(result, product(y, x)) < bound(np.float32)


def test_new_blocks_start_with_poisoned_tiles(rng):
    mm = devmath.Gemm(4, 4, 4)

    @cuda.jit
    def kernel(a, c):
        tile = devmath.shared(mm.a)
        if cuda.blockIdx.x == 0:
            devmath.load(a, tile)
            devmath.wait()
        devmath.store(tile, c[4 * cuda.blockIdx.x :])

    a, c = normal(rng, (4, 4), np.float32), np.zeros((8, 4), np.float32)
    kernel[2, mm.block_dim](a, c)
    np.testing.assert_array_equal(c[:4], a)
    assert np.isnan(c[4:]).all()


def test_registers_outside_the_tile_are_poisoned(rng):
    mm = devmath.Gemm(33, 47, 19, np.float16)

    @cuda.jit
    def kernel(a, b, wrong):
        sa, sb = devmath.shared(mm.a), devmath.shared(mm.b)
        acc = devmath.accumulator(mm)
        devmath.load(a, sa)
        devmath.load(b, sb)
        devmath.wait()
        devmath.gemm(mm, sa, sb, acc)
        for i in range(acc.size):
            if acc.in_bounds(i) == np.isnan(acc[i]):
                wrong[cuda.threadIdx.x] += 1

    wrong = np.zeros(mm.threads, np.int64)
    kernel[1, mm.block_dim](*operands(rng, mm), wrong)
    assert not wrong.any()
