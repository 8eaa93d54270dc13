"""Several products a block: numbers, edges of a batch, who must call together, and races within a warp."""

import re

import numpy as np
import pytest
from numba import cuda
from numba.core.errors import TypingError

import devmath
from tests import batched_kernels
from tests.cases import BATCHED_CASES
from tests.oracle import batch, factors, gemm_bound, normal, product, relative_error

SMALL = [case for case in BATCHED_CASES if case.small]
MM = devmath.Gemm(8, 8, 8, execution="warp", gemms_per_block=16)  # two warps, four lanes a product
BLOCK = devmath.Gemm(8, 8, 8, threads=MM.threads)
ALONE = devmath.Gemm(4, 4, 4, execution="thread", gemms_per_block=32)
FFT = devmath.FFT(16, ffts_per_block=4, elements_per_thread=2)
ROWS = devmath.Gemm(4, 4, 16, "complex64", execution="warp", threads=64)
ONES = np.ones((16, 8, 8), np.float32)


@pytest.fixture
def rng():
    return np.random.default_rng()


def bound(mm):
    return 2 * gemm_bound(mm, mm.c_dtype)


def one_warp(case):
    """The descriptor with one warp a block: every thread is a Python thread."""
    mm = case.descriptor()
    return devmath.Gemm(
        mm.m, mm.n, mm.k, mm.dtype, **{**dict(case.fields), "gemms_per_block": 32 // mm.threads_per_gemm}
    )


@pytest.mark.parametrize("case", SMALL, ids=str)
def test_a_batch_in_registers(case, rng):
    mm = one_warp(case)
    count = mm.gemms_per_block + 1
    a, b, c = batch(rng, mm, count)
    batched_kernels.gemm_batched(mm)[mm.grid(count), mm.block_dim](a, b, c)
    assert relative_error(c, product(a, b, mm)) < bound(mm)


@pytest.mark.parametrize("case", SMALL, ids=str)
def test_a_batch_in_tiles(case, rng):
    mm = one_warp(case)
    count = 2 * mm.gemms_per_block + 1  # by one block, which goes round three times
    a, b, _ = batch(rng, mm, count)
    c = normal(rng, (count, mm.m, mm.n), mm.c_dtype)
    alpha, beta = factors(mm)
    want = alpha * product(a, b, mm) + beta * c.astype(np.complex128 if mm.dtype.kind == "c" else np.float64)
    batched_kernels.gemm_batched_tile(mm)[1, mm.block_dim](alpha, a, b, beta, c)
    assert relative_error(c, want) < bound(mm)


@pytest.mark.parametrize("mm", [MM, ALONE, BLOCK], ids=repr)
def test_a_batch_two_loads_ahead(mm, rng):
    count = 4 * mm.gemms_per_block + 1
    a, b, c = batch(rng, mm, count)
    batched_kernels.gemm_batched_pipelined(mm)[1, mm.block_dim](a, b, c)
    assert relative_error(c, product(a, b, mm)) < bound(mm)


@pytest.mark.parametrize("mm", [MM, ALONE, BLOCK], ids=repr)
def test_slices_and_an_epilog(mm, rng):
    count = 2 * mm.gemms_per_block
    a, b, c = batch(rng, mm, count)
    bias = normal(rng, (mm.n,), np.float32)
    batched_kernels.gemm_batched_epilog(mm)[mm.grid(count), mm.block_dim](a, b, bias, c)
    np.testing.assert_allclose(c, np.maximum(product(a, b) + bias, 0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mm", [MM, BLOCK, ALONE], ids=repr)
def test_indices_outside_the_batch(mm, rng):
    """They load zeros and store nothing, whether too large or negative."""

    @cuda.jit
    def kernel(shift, a, c, d):
        tile, acc = devmath.shared(mm.a), devmath.accumulator(mm)
        i = devmath.gemm_index(mm) + shift
        devmath.load(a, tile, i)
        devmath.wait(mm)
        devmath.store(tile, c, devmath.gemm_index(mm))
        acc[0] = 7
        devmath.store(acc, d, i)

    per_block = mm.gemms_per_block
    a = normal(rng, (3, mm.m, mm.k), np.float32)
    for shift in (-2, -(2**40), 1, 2**40):
        c, d = np.full((per_block, mm.m, mm.k), np.nan, np.float32), np.full((3, mm.m, mm.n), np.nan, np.float32)
        kernel[1, mm.block_dim](shift, a, c, d)
        for i in range(per_block):
            inside = 0 <= i + shift < 3
            np.testing.assert_array_equal(c[i], a[i + shift] if inside else 0)
            assert not inside or np.count_nonzero(d[i + shift] == 7) == mm.threads_per_gemm
        reached = {i + shift for i in range(per_block)}
        assert all(np.isnan(d[i]).all() for i in range(3) if i not in reached)


@pytest.mark.parametrize("view", ["every other matrix", "reversed", "transposed", "columns apart", "smaller"])
def test_batches_of_any_strides(view, rng):
    views = {
        "every other matrix": lambda x: x[::2, :8, :8],
        "reversed": lambda x: x[::-1, 7::-1, 7::-1],
        "transposed": lambda x: x.transpose((0, 2, 1))[:, :8, :8],
        "columns apart": lambda x: x[:, :8, ::2],
        "smaller": lambda x: x[:, :5, :6],
    }
    a, b, c = (views[view](cuda.to_device(normal(rng, (21, 16, 16), np.float32))) for _ in range(3))
    batched_kernels.gemm_batched(MM)[MM.grid(21), MM.block_dim](a, b, c)
    rows, columns = c.shape[1:]
    inner = min(a.shape[2], b.shape[1])  # what the arrays lack counts as zero
    want = product(a.copy_to_host()[:, :, :inner], b.copy_to_host()[:, :inner])[:, :rows, :columns]
    assert relative_error(c.copy_to_host(), want) < bound(MM)


def test_warps_need_not_wait_for_each_other(rng):
    """Those of the second half of the batch multiply twice as often."""

    @cuda.jit
    def kernel(a, c):
        sa, acc = devmath.shared(MM.a), devmath.accumulator(MM)
        i = devmath.gemm_index(MM)
        for _ in range(1 + cuda.threadIdx.x // 32):
            devmath.load(a, sa, i)
            devmath.wait(MM)
            devmath.gemm(MM, sa, sa, acc)
            devmath.wait(MM)
        cuda.syncthreads()
        devmath.store(acc, c, i)

    a = normal(rng, (16, 8, 8), np.float32)
    c = np.full_like(a, np.nan)
    square = devmath.Gemm(8, 8, 8, execution="warp", gemms_per_block=16)
    assert square == MM
    assert square.a.layout == square.b.layout
    kernel[1, MM.block_dim](a, c)
    times = np.repeat([1, 2], 8)[:, None, None]
    assert relative_error(c, times * product(a, a)) < bound(MM)


def launch(body):
    """Run ``body(rank, a, b)`` in every thread of two warps, with loaded tiles."""

    @cuda.jit
    def kernel():
        a, b = devmath.shared(MM.a), devmath.shared(MM.b)
        devmath.load(ONES, a, devmath.gemm_index(MM))
        devmath.load(ONES, b, devmath.gemm_index(MM))
        devmath.wait(MM)
        body(cuda.threadIdx.x, a, b)

    kernel[1, MM.block_dim]()


def one_lane_stays_away(rank, a, b):
    if rank != 40:
        devmath.wait(MM)


def half_a_warp_loads(rank, a, b):
    if rank % 32 < 16:
        devmath.load(ONES, a, 0)


def one_lane_takes_the_block_barrier(rank, a, b):
    if rank == 3:
        devmath.wait()
    else:
        devmath.wait(MM)


def a_product_of_two_minds(rank, a, b):
    devmath.load(ONES, a, int(rank == 9))


def a_load_is_read_at_once(rank, a, b):
    devmath.load(ONES, a, 0)
    return a[0, 0]


def the_older_of_two_loads(rank, a, b):
    devmath.load(ONES, a, 0)
    devmath.load(ONES, b, 0)
    devmath.wait(MM, pending=2)
    return a[0, 0]


def a_load_over_what_is_read(rank, a, b):
    devmath.gemm(MM, a, b, devmath.accumulator(MM))
    devmath.load(ONES, b, 0)


def an_element_of_another_lane(rank, a, b):
    a[rank % 4, 0] = rank
    return a[(rank + 1) % 4, 0]


REPORTED = {
    one_lane_stays_away: r"every thread of warp 1 must call devmath\.wait at .* missing are threads 40 of 64$",
    half_a_warp_loads: r"every thread of warp \d must call devmath\.load .* missing are threads (16-31|48-63) of 64$",
    one_lane_takes_the_block_barrier: (
        r"every thread of warp 0 must call devmath\.wait .* missing are threads 3 of 64; threads 3 called devmath\.wait"
    ),
    a_product_of_two_minds: r"the 4 threads of a product must call devmath\.load at .* with the same arguments",
    a_load_is_read_at_once: (
        r"by thread \d+ reads element \(0, 0\) of .*, one for each 4 threads \(made at .*\), which devmath\.load at .*"
        r" by threads \d+-\d+ wrote: devmath\.wait\(mm\) must come between"
    ),
    the_older_of_two_loads: r"which devmath\.load .* wrote: devmath\.wait\(mm, pending=1\), or less, must come between",
    a_load_over_what_is_read: r"devmath\.load at .* which devmath\.gemm at .* by threads \d+-\d+ may still read",
    an_element_of_another_lane: r"t\[i, j\].* by thread \d+ .*: devmath\.wait\(mm\) must come between",
}


@pytest.mark.parametrize("body", REPORTED, ids=[body.__name__ for body in REPORTED])
def test_reported(body):
    with pytest.raises(devmath.SimulationError, match=REPORTED[body]):
        launch(body)


def test_a_lane_reads_what_others_wrote_after_wait():
    def body(rank, a, b):
        a[rank % 4, 0] = rank
        devmath.wait(MM)
        assert a[(rank + 1) % 4, 0] == rank // 4 * 4 + (rank + 1) % 4

    launch(body)


C_RULE = "a tile (8, 8) of float32, order 'row'"
REFUSED = {
    "wait for a transform": (
        lambda: devmath.wait(devmath.FFT(64)),
        "devmath.wait: its first argument must be a devmath.Gemm, got FFT(64",
    ),
    "wait for two": (
        lambda: devmath.wait(MM, MM),
        "devmath.wait: pending must be an integer >= 0, known while compiling, got Gemm(8, 8, 8",
    ),
    "index of an operand": (
        lambda: devmath.gemm_index(MM.a),
        "devmath.gemm_index: its first argument must be a devmath.Gemm, got Operand(",
    ),
    "a batch without an index": (
        lambda: devmath.load(ONES, devmath.shared(MM.a)),
        "devmath.load: source must be a 2-D array of float32, got a 3-D array of float32",
    ),
    "an index of halves": (
        lambda: devmath.load(ONES, devmath.shared(MM.a), 0.5),
        "devmath.load: a 3-D array takes one more argument, the index: an integer",
    ),
    "two indices": (
        lambda: devmath.store(devmath.accumulator(MM), ONES, 0, 1),
        "devmath.store: a 3-D array takes one more argument, the index: an integer",
    ),
    "an index of a tile": (
        lambda: devmath.store(devmath.accumulator(MM), devmath.shared(MM.c), 0),
        "devmath.store: only a 3-D array takes an index, got 1 more arguments for a tile",
    ),
    "the tile of a product where the block multiplies": (
        lambda: devmath.gemm(BLOCK, devmath.shared(MM.a), devmath.shared(BLOCK.b), devmath.accumulator(BLOCK)),
        f"devmath.gemm: a must be devmath.shared(mm.a) of {BLOCK!r}, got {C_RULE}, one for each 4 threads",
    ),
    "the tile of the block for many results": (
        lambda: devmath.gemm(MM, 1.0, devmath.shared(MM.a), devmath.shared(MM.b), 0.0, devmath.shared(BLOCK.c)),
        f"devmath.gemm: c must be devmath.shared(mm.c) of {MM!r}, got {C_RULE}",
    ),
    "accumulators of many products to one tile": (
        lambda: devmath.store(devmath.accumulator(MM), devmath.shared(BLOCK.c)),
        f"devmath.store: target must be devmath.shared(mm.c) of {MM!r}, got {C_RULE}",
    ),
    "a transform of a product's tile": (
        lambda: devmath.fft(FFT, devmath.shared(ROWS.a)),
        "devmath.fft: data must be a tile (4, 16) of complex64, order 'row', got a tile (4, 16) of complex64, order"
        " 'row', one for each 2 threads",
    ),
    "descriptors of different blocks": (
        lambda: (devmath.gemm_index(MM), devmath.gemm_index(ALONE)),
        "descriptors of one kernel must agree on the threads of a block, got 64 for",
    ),
}


@pytest.mark.parametrize("misuse", REFUSED)
def test_wrong_uses_are_refused(misuse):
    body, sentence = REFUSED[misuse]

    @cuda.jit
    def kernel():
        body()

    with pytest.raises(TypingError, match=re.escape(sentence)):
        kernel[1, MM.block_dim]()


@pytest.mark.parametrize("execution", ["warp", "thread", "block"])
def test_one_tile_for_all_products_of_a_block(execution, rng):
    mm = devmath.Gemm(8, 8, 8, execution=execution)
    count = 2 * mm.gemms_per_block + 1
    a, b = normal(rng, (count, 8, 8), np.float32), normal(rng, (8, 8), np.float32)
    c = np.full_like(a, np.nan)
    batched_kernels.gemm_common(mm)[mm.grid(count), mm.block_dim](a, b, c)
    assert relative_error(c, product(a, b)) < bound(mm)


def test_a_common_tile_holds_no_result():
    @cuda.jit
    def kernel(c):
        sa, sb, sc = devmath.shared(MM.a), devmath.shared(MM.b), devmath.shared(MM.c.common)
        devmath.gemm(MM, 1.0, sa, sb, 0.0, sc)

    with pytest.raises(TypingError, match=re.escape("c must be devmath.shared(mm.c) of")):
        kernel[1, MM.block_dim](ONES)
