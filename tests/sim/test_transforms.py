"""Transforms of whole kernels: every small case, partial blocks, short and reversed rows, operands of every kind."""

import numpy as np
import pytest
from numba import cuda

import devmath
from tests import kernels
from tests.cases import FFT_CASES
from tests.oracle import fft_bound, normal, relative_error, transform

SMALL = [case for case in FFT_CASES if case.small]


@pytest.fixture
def rng():
    return np.random.default_rng()


def run(kernel, desc, *arrays):
    """Launch a kernel over the rows of the first array."""
    kernel[desc.grid(arrays[0].shape[0]), desc.block_dim](*arrays)


@pytest.mark.parametrize("direction", ["forward", "inverse"])
@pytest.mark.parametrize("kernel", [kernels.fft_registers, kernels.fft_tile])
@pytest.mark.parametrize("case", SMALL, ids=str)
def test_every_row_of_partly_filled_blocks(case, kernel, direction, rng):
    desc = getattr(case.descriptor(), direction)
    x = normal(rng, (desc.ffts_per_block + 1, desc.n), desc.dtype)
    y = np.full_like(x, np.nan)
    run(kernel(desc), desc, x, y)
    assert relative_error(y, transform(x, direction == "inverse")) < fft_bound(desc.n, desc.dtype)


@pytest.mark.parametrize("case", [case for case in SMALL if case.n >= 16], ids=str)
def test_convolution_in_one_pass(case, rng):
    desc = case.descriptor()
    x, taps = normal(rng, (2, desc.n), desc.dtype), normal(rng, (desc.n,), desc.dtype)
    h = np.fft.fft(taps).astype(desc.dtype)
    y = np.full_like(x, np.nan)
    run(kernels.convolve(desc), desc, x, h, y)
    want = transform(transform(x) * h, inverse=True)
    assert relative_error(y, want) < 2 * fft_bound(desc.n, desc.dtype)


@pytest.mark.parametrize("kernel", [kernels.fft_registers, kernels.fft_tile])
def test_no_rows_launch_one_block_that_stores_nothing(kernel):
    desc = devmath.FFT(16)
    x = np.empty((0, 16), np.complex64)
    frame = np.full((3, 16), 7, np.complex64)
    assert desc.grid(0) == 1
    kernel(desc)[desc.grid(0), desc.block_dim](x, cuda.to_device(frame)[1:1])
    run(kernel(desc), desc, x, x)
    assert (frame == 7).all()


@pytest.mark.parametrize("ffts_per_block", [1, 2, 4])
@pytest.mark.parametrize("kernel", [kernels.fft_registers, kernels.fft_tile])
def test_what_is_not_finite_stays_in_its_row(kernel, ffts_per_block, rng):
    desc = devmath.FFT(64, ffts_per_block=ffts_per_block)
    rows = 2 * ffts_per_block + 4
    clean = normal(rng, (rows, 64), np.complex64)
    x = clean.copy()
    x[3, 17], x[5, 0] = np.nan, np.inf
    framed = cuda.to_device(np.full((rows + 2, 66), 7, np.complex64))
    want = np.empty_like(x)
    run(kernel(desc), desc, clean, want)
    run(kernel(desc), desc, x, framed[1:-1, 1:-1])
    got = framed.copy_to_host()
    good = np.isin(np.arange(rows), (3, 5), invert=True)
    assert not np.isfinite(got[1:-1, 1:-1][~good]).any()
    np.testing.assert_array_equal(got[1:-1, 1:-1][good], want[good])
    got[1:-1, 1:-1] = 7
    assert (got == 7).all()


def test_reversed_views(rng):
    """A spike that is its own mirror image, convolved with taps, in either direction of memory."""
    desc = devmath.FFT(64)
    spike = np.zeros((1, 31), np.complex64)
    spike[0, 15] = 1
    taps = np.zeros(64, np.complex64)
    taps[:31] = rng.uniform(size=31)
    h = np.fft.fft(taps).astype(np.complex64)
    want = np.zeros(64)
    want[15:46] = taps[:31].real
    for x in (cuda.to_device(spike)[:, ::-1], cuda.to_device(spike)[::-1], spike):
        y = np.full((1, 64), np.nan, np.complex64)
        run(kernels.convolve(desc), desc, x, h, y)
        np.testing.assert_allclose(y[0] / 64, want, atol=1e-6)


@pytest.mark.parametrize("kernel", [kernels.fft_registers, kernels.fft_tile])
def test_strided_rows_in_and_out(kernel, rng):
    desc = devmath.FFT(16)
    base = normal(rng, (20, 9), np.complex64)
    target = cuda.to_device(np.full((3, 32), np.nan, np.complex64))
    x, y = cuda.to_device(base).T[8:2:-2, :16], target[:, ::-2]
    run(kernel(desc), desc, x, y)
    assert relative_error(y.copy_to_host(), transform(base.T[8:2:-2, :16])) < fft_bound(16, np.complex64)
    assert np.isnan(target.copy_to_host()[:, ::2]).all()


@pytest.mark.parametrize(
    ("n", "want"),
    [
        (8, [148, 168, 180, 184, 180, 168, 148, 120]),
        (16, [1, 4, 10, 20, 35, 56, 84, 120, 147, 164, 170, 164, 145, 112, 64, 0]),
    ],
)
def test_wrap_around_of_circular_convolution(n, want):
    """Rows shorter than the transform are filled with zeros."""
    desc = devmath.FFT(n, np.complex128)
    s = np.arange(1, 9, dtype=np.complex128)
    y = np.full((1, n), np.nan, np.complex128)
    run(kernels.convolve(desc), desc, s[None], np.fft.fft(s, n), y)
    np.testing.assert_allclose(y[0] / n, want, atol=1e-12)


def test_one_dimensional_array_is_one_row(rng):
    desc = devmath.FFT(16, ffts_per_block=3)
    x, y = normal(rng, (16,), np.complex64), np.full(16, np.nan, np.complex64)
    kernels.fft_registers(desc)[2, desc.block_dim](x, y)
    assert relative_error(y, transform(x)) < fft_bound(16, np.complex64)


def test_rows_outside_the_array_load_zeros_and_store_nothing(rng):
    desc = devmath.FFT(8, ffts_per_block=1)

    @cuda.jit
    def kernel(x, y, row, sums):
        v = devmath.registers(desc)
        devmath.load(x, v, row)
        for i in range(v.size):
            sums[v.index(i)] = v[i]
        devmath.store(v, y, row)

    x = normal(rng, (2, 8), np.complex64)
    for row in (-1, 2):
        y, sums = np.full_like(x, 7), np.full(8, np.nan, np.complex64)
        kernel[1, desc.block_dim](x, y, row, sums)
        assert (sums == 0).all()
        assert (y == 7).all()


def test_registers_start_poisoned():
    desc = devmath.FFT(8, ffts_per_block=1)

    @cuda.jit
    def kernel(y):
        devmath.store(devmath.registers(desc), y, 0)

    y = np.zeros((1, 8), np.complex64)
    kernel[1, desc.block_dim](y)
    assert np.isnan(y.real).all()
    assert np.isnan(y.imag).all()


def test_forward_and_inverse_in_a_tile_need_no_barrier_between(rng):
    """Each thread transforms the elements that it owns."""
    desc = devmath.FFT(16, ffts_per_block=2)

    @cuda.jit
    def kernel(x, y):
        tile = devmath.shared(desc)
        devmath.load(x, tile)
        devmath.wait()
        devmath.fft(desc, tile)
        devmath.fft(desc.inverse, tile)
        devmath.wait()
        devmath.store(tile, y)

    x = normal(rng, (2, 16), np.complex64)
    y = np.zeros_like(x)
    kernel[1, desc.block_dim](x, y)
    assert relative_error(y, 16 * x) < 2 * fft_bound(16, np.complex64)


def test_product_then_transform_of_its_rows(rng):
    mm = devmath.Gemm(4, 16, 8, np.complex64, threads=32)
    desc = devmath.FFT(16, ffts_per_block=4, elements_per_thread=2)

    @cuda.jit
    def kernel(a, b, y):
        sa, sb, sc = devmath.shared(mm.a), devmath.shared(mm.b), devmath.shared(mm.c)
        devmath.load(a, sa)
        devmath.load(b, sb)
        devmath.wait()
        devmath.gemm(mm, 1.0, sa, sb, 0.0, sc)
        devmath.wait()
        devmath.fft(desc, sc)
        devmath.wait()
        devmath.store(sc, y)

    a, b = normal(rng, (4, 8), np.complex64), normal(rng, (8, 16), np.complex64)
    y = np.zeros((4, 16), np.complex64)
    kernel[1, mm.block_dim](a, b, y)
    assert relative_error(y, np.fft.fft(a.astype(np.complex128) @ b)) < 1e-6


@pytest.mark.parametrize("shape", [(2, 20), 32])
def test_plain_shared_array(shape, rng):
    desc = devmath.FFT(16, ffts_per_block=2)
    two_dimensional = isinstance(shape, tuple)

    @cuda.jit
    def kernel(x, y):
        data = cuda.shared.array(shape, np.complex64)
        rank = cuda.threadIdx.x
        for i in range(rank, 32, desc.threads):
            if two_dimensional:
                data[i // 16, i % 16] = x[i // 16, i % 16]
            else:
                data[i] = x[i // 16, i % 16]
        devmath.wait()
        devmath.fft(desc, data)
        devmath.wait()
        for i in range(rank, 32, desc.threads):
            y[i // 16, i % 16] = data[i // 16, i % 16] if two_dimensional else data[i]

    x = normal(rng, (2, 16), np.complex64)
    y = np.zeros_like(x)
    kernel[1, desc.block_dim](x, y)
    assert relative_error(y, transform(x)) < fft_bound(16, np.complex64)


def test_view_of_a_plain_shared_array(rng):
    desc = devmath.FFT(16, ffts_per_block=2)

    @cuda.jit
    def kernel(x, y):
        data = cuda.shared.array((3, 20), np.complex64)[1:, 2:18]
        rank = cuda.threadIdx.x
        for i in range(rank, 32, desc.threads):
            data[i // 16, i % 16] = x[i // 16, i % 16]
        devmath.wait()
        devmath.fft(desc, data)
        devmath.wait()
        for i in range(rank, 32, desc.threads):
            y[i // 16, i % 16] = data[i // 16, i % 16]

    x = normal(rng, (2, 16), np.complex64)
    y = np.zeros_like(x)
    kernel[1, desc.block_dim](x, y)
    assert relative_error(y, transform(x)) < fft_bound(16, np.complex64)


def test_plain_local_array(rng):
    desc = devmath.FFT(16, ffts_per_block=1)

    @cuda.jit
    def kernel(x, y):
        v, place = cuda.local.array(desc.elements_per_thread, np.complex64), devmath.registers(desc)
        for i in range(place.size):
            v[i] = x[place.index(i)]
        devmath.fft(desc, v)
        for i in range(place.size):
            y[place.index(i)] = v[i]

    x = normal(rng, (16,), np.complex64)
    y = np.zeros_like(x)
    kernel[1, desc.block_dim](x, y)
    assert relative_error(y, transform(x)) < fft_bound(16, np.complex64)


def test_transform_index_counts_over_blocks():
    desc = devmath.FFT(16, ffts_per_block=3)

    @cuda.jit
    def kernel(rows):
        rows[cuda.grid(1)] = devmath.transform_index(desc)

    rows = np.zeros(2 * desc.threads, np.int64)
    kernel[2, desc.block_dim](rows)
    np.testing.assert_array_equal(rows, np.repeat(np.arange(6), desc.threads_per_fft))
