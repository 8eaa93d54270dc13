"""Batches of small products against NumPy in double precision: odd counts, edges, views, loops."""

import numpy as np
import pytest
from numba import cuda

import devmath
from devmath.lto.arch import shared_memory_limit_bytes
from tests import batched_kernels, oracle
from tests.cases import BATCHED_CASES
from tests.gpu.device_arrays import Twin, on_device

pytestmark = pytest.mark.gpu


def output(count, mm):
    """A dense batch full of NaN, with a matrix of sevens before it and one after it."""
    host = oracle.unset((count + 2, mm.m, mm.n), mm.c_dtype)
    host[[0, -1]] = 7
    return host, Twin(host)


def fetch(twin):
    """The batch, once the matrices around it were found intact."""
    whole = twin.fetch()
    assert np.array_equal(whole[[0, -1]], np.full_like(whole[[0, -1]], 7)), "a kernel wrote beside its output"
    return whole[1:-1]


def assert_close(got, want, mm):
    """Each product for itself: one that was mixed up with another shows."""
    for one_got, one_want in zip(got, want, strict=True):
        assert oracle.gemm_error(one_got, one_want) < 4 * oracle.gemm_bound(mm, mm.c_dtype)


def counts(mm):
    """One product, part of a block, a whole one, one more, and many blocks."""
    return sorted({1, max(mm.gemms_per_block - 1, 1), mm.gemms_per_block, mm.gemms_per_block + 1, 1003})


def fitting(cases, operands, stages=1):
    """Cases whose tiles of these operands, each in so many stages, fit the shared memory of a block."""
    limit = shared_memory_limit_bytes("sm_90a")

    def needed_bytes(mm):
        return stages * sum(getattr(mm, name).size_bytes for name in operands)

    return [case for case in cases if needed_bytes(case.descriptor()) <= limit]


@pytest.mark.parametrize("case", BATCHED_CASES, ids=str)
def test_registers(case, rng):
    mm = case.descriptor()
    kernel = batched_kernels.gemm_batched(mm)
    for count in counts(mm):
        a, b, _ = oracle.batch(rng, mm, count)
        host, twin = output(count, mm)
        kernel[mm.grid(count), mm.block_dim](on_device(a), on_device(b), twin.view(host[1:-1]))
        assert_close(fetch(twin), oracle.product(a, b, mm), mm)


@pytest.mark.parametrize("blocks", [1, 5])
@pytest.mark.parametrize("case", fitting(BATCHED_CASES, "abc"), ids=str)
def test_tiles_reloaded_by_few_blocks(case, blocks, rng):
    mm = case.descriptor()
    alpha, beta = oracle.factors(mm)
    count = 2 * blocks * mm.gemms_per_block + 3
    a, b, _ = oracle.batch(rng, mm, count)
    host, twin = output(count, mm)
    kernel = batched_kernels.gemm_batched_tile(mm)
    want = oracle.product(a, b, mm)
    kernel[blocks, mm.block_dim](alpha, on_device(a), on_device(b), 0 * beta, twin.view(host[1:-1]))
    first = fetch(twin)
    assert_close(first, alpha * want, mm)
    kernel[blocks, mm.block_dim](alpha, on_device(a), on_device(b), beta, twin.view(host[1:-1]))
    assert_close(fetch(twin), alpha * want + beta * first.astype(want.dtype), mm)


@pytest.mark.parametrize("blocks", [1, 7])
@pytest.mark.parametrize("case", fitting(BATCHED_CASES[::3], "ab", stages=3), ids=str)
def test_two_loads_ahead(case, blocks, rng):
    mm = case.descriptor()
    count = 5 * blocks * mm.gemms_per_block + 3
    a, b, _ = oracle.batch(rng, mm, count)
    host, twin = output(count, mm)
    kernel = batched_kernels.gemm_batched_pipelined(mm)
    kernel[blocks, mm.block_dim](on_device(a), on_device(b), twin.view(host[1:-1]))
    assert_close(fetch(twin), oracle.product(a, b, mm), mm)


@pytest.mark.parametrize("shape", [(8, 8, 8), (5, 7, 3), (32, 32, 32)], ids=str)
@pytest.mark.parametrize("execution", ["warp", "thread", "block"])
def test_slices_and_an_epilog(execution, shape, rng):
    mm = devmath.Gemm(*(shape if execution != "thread" else (5, 4, 3)), "float32", execution=execution)
    count = 9 * mm.gemms_per_block
    a, b, _ = oracle.batch(rng, mm, count)
    bias = oracle.normal(rng, (mm.n,), np.float32)
    host, twin = output(count, mm)
    kernel = batched_kernels.gemm_batched_epilog(mm)
    kernel[mm.grid(count), mm.block_dim](on_device(a), on_device(b), on_device(bias), twin.view(host[1:-1]))
    assert_close(fetch(twin), np.maximum(oracle.product(a, b) + bias, 0), mm)


VIEWS = {
    "every other matrix": lambda x, m, n: x[::2, :m, :n],
    "rows apart": lambda x, m, n: x[:, : 2 * m : 2, :n],
    "columns apart": lambda x, m, n: x[:, :m, : 2 * n : 2],
    "transposed": lambda x, m, n: x.transpose(0, 2, 1)[:, :m, :n],
    "reversed": lambda x, m, n: x[::-1, m - 1 :: -1, n - 1 :: -1] if m < x.shape[1] else x,
    "one for all": lambda x, m, n: np.broadcast_to(x[:1, :m, :n], (x.shape[0], m, n)),
    "batch along the rows": lambda x, m, n: x.transpose(1, 0, 2)[:33, :m, :n],
    "shifted by an element": lambda x, m, n: x[:, 1 : m + 1, 1 : n + 1],
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize(
    "mm",
    [
        devmath.Gemm(8, 8, 8, "float32", execution="warp"),
        devmath.Gemm(13, 7, 9, "complex64", execution="warp", a_order="col"),
        devmath.Gemm(32, 32, 32, "float64", execution="warp"),
        devmath.Gemm(16, 16, 16, "float16", execution="warp", b_order="col"),
        devmath.Gemm(4, 4, 4, "float32", execution="thread"),
        devmath.Gemm(16, 16, 16, "float32"),
    ],
    ids=repr,
)
def test_views(mm, name, rng):
    extent = 2 * max(mm.m, mm.n, mm.k, 33)
    view = VIEWS[name]
    bases = [oracle.normal(rng, (extent, extent, extent), mm.dtype) for _ in range(2)]
    views = [view(base, *shape) for base, shape in zip(bases, ((mm.m, mm.k), (mm.k, mm.n)), strict=True)]
    count = views[0].shape[0]
    host, twin = output(count, mm)
    twins = [Twin(base) for base in bases]
    arrays = [of.view(x) for of, x in zip(twins, views, strict=True)]
    batched_kernels.gemm_batched(mm)[mm.grid(count), mm.block_dim](*arrays, twin.view(host[1:-1]))
    assert_close(fetch(twin), oracle.product(*views, mm), mm)


@pytest.mark.parametrize("execution", ["block", "warp", "thread"])
def test_indices_outside_the_batch(execution, rng):
    """They load zeros and store nothing, whether too large or negative."""
    mm = devmath.Gemm(4, 4, 4, execution=execution)

    @cuda.jit
    def kernel(shift, a, c, d):
        tile, acc = devmath.shared(mm.a), devmath.accumulator(mm)
        own = devmath.gemm_index(mm)
        devmath.load(a, tile, own + shift)
        devmath.wait(mm)
        devmath.store(tile, c, own)
        for i in range(acc.size):
            acc[i] = 7
        devmath.store(acc, d, own + shift)

    per_block = mm.gemms_per_block
    a = oracle.normal(rng, (3, 4, 4), np.float32)
    for shift in (-2, -(2**40), 1, 2**40):
        c = cuda.to_device(np.full((per_block, 4, 4), np.nan, np.float32))
        d = cuda.to_device(np.full((3, 4, 4), np.nan, np.float32))
        kernel[1, mm.block_dim](shift, on_device(a), c, d)
        sources = [i + shift if 0 <= i + shift < 3 else None for i in range(per_block)]
        want = [np.zeros((4, 4)) if i is None else a[i] for i in sources]
        assert np.array_equal(c.copy_to_host(), np.array(want, np.float32))
        stored = d.copy_to_host()
        assert all((stored[i] == 7).all() if i in sources else np.isnan(stored[i]).all() for i in range(3))


def test_one_operand_of_the_block_for_all_products(rng):
    mm = devmath.Gemm(8, 8, 8, execution="warp")
    kernel = batched_kernels.gemm_common(mm)
    a, b = oracle.normal(rng, (1003, 8, 8), np.float32), oracle.normal(rng, (8, 8), np.float32)
    host, twin = output(1003, mm)
    kernel[mm.grid(1003), mm.block_dim](on_device(a), on_device(b), twin.view(host[1:-1]))
    assert_close(fetch(twin), oracle.product(a, b), mm)


def test_warps_of_a_block_go_their_own_ways(rng):
    """Odd warps multiply three times as often; only a barrier of the block would have them wait."""
    mm = devmath.Gemm(8, 8, 8, execution="warp")

    @cuda.jit
    def kernel(a, b, c):
        sa, sb = devmath.shared(mm.a), devmath.shared(mm.b)
        acc = devmath.accumulator(mm)
        i = devmath.gemm_index(mm)
        for _ in range(1 + 2 * (cuda.threadIdx.x // 32 % 2)):
            devmath.load(a, sa, i)
            devmath.load(b, sb, i)
            devmath.wait(mm)
            devmath.gemm(mm, sa, sb, acc)
            devmath.wait(mm)
        devmath.store(acc, c, i)

    a, b, _ = oracle.batch(rng, mm, 1003)
    host, twin = output(1003, mm)
    kernel[mm.grid(1003), mm.block_dim](on_device(a), on_device(b), twin.view(host[1:-1]))
    times = 1 + 2 * (np.arange(1003) // (32 // mm.threads_per_gemm) % 2)
    assert_close(fetch(twin), times[:, None, None] * oracle.product(a, b), mm)
