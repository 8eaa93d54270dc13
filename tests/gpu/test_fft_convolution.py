"""Convolutions in one kernel: wrap-around, reversed views, the delay that a matched filter finds."""

import numpy as np
import pytest
from numba import cuda

import devmath
from tests import kernels, oracle
from tests.cases import FFT_CASES
from tests.gpu.device_arrays import Output, Twin

pytestmark = pytest.mark.gpu

SOME = [case for case in FFT_CASES if case.n in (2, 64, 512, 2048, 8192) or case.fields]


def convolve(fft, x, taps):
    """Circular convolution of the rows of a host array, or of a device array, with one filter."""
    spectrum = (np.fft.fft(taps, fft.n) / fft.n).astype(fft.dtype)
    y = Output((x.shape[0], fft.n), fft.dtype)
    kernel = kernels.convolve(fft)
    kernel[fft.grid(x.shape[0]), fft.block_dim](cuda.to_device(x), cuda.to_device(spectrum), y.device)
    return y.fetch()


def bound(n, dtype):
    return 2 * oracle.fft_bound(n, dtype) + np.finfo(dtype).eps


@pytest.mark.parametrize("case", SOME, ids=str)
def test_circular(case, rng):
    fft = case.descriptor()
    x = oracle.normal(rng, (2 * fft.ffts_per_block + 1, fft.n), fft.dtype)
    taps = oracle.normal(rng, (fft.n,), fft.dtype)
    want = np.fft.ifft(np.fft.fft(x.astype(np.complex128)) * np.fft.fft(taps.astype(np.complex128)))
    assert oracle.relative_error(convolve(fft, x, taps), want) < bound(fft.n, fft.dtype)


@pytest.mark.parametrize("n", [4096, 8192])
def test_a_long_enough_transform_does_not_wrap_around(n, rng):
    x, taps = (oracle.normal(rng, (2048,), np.complex64) for _ in range(2))
    got = convolve(devmath.FFT(n), x[np.newaxis], taps)[0]
    want = np.zeros(n, np.complex128)
    want[:4095] = np.convolve(x.astype(np.complex128), taps.astype(np.complex128))
    assert oracle.relative_error(got, want) < bound(n, np.complex64)


@pytest.mark.parametrize(
    ("n", "want"),
    [
        (8, [148, 168, 180, 184, 180, 168, 148, 120]),
        (16, [*np.convolve(np.arange(1, 9), np.arange(1, 9)), 0]),
    ],
)
def test_a_short_one_wraps_around(n, want):
    s = np.arange(1, 9, dtype=np.complex64)
    assert np.allclose(convolve(devmath.FFT(n), s[np.newaxis], s)[0], want, atol=1e-3)


def test_a_reversed_view_is_the_signal_it_shows(rng):
    fft = devmath.FFT(64)
    impulse = np.zeros((1, 31), np.complex64)
    impulse[0, 15] = 1
    taps = rng.random(31).astype(np.complex64)
    twin = Twin(impulse)
    y = Output((1, 64), fft.dtype)
    spectrum = cuda.to_device((np.fft.fft(taps, 64) / 64).astype(np.complex64))
    kernels.convolve(fft)[1, fft.block_dim](twin.view(impulse[:, ::-1]), spectrum, y.device)
    want = np.zeros((1, 64))
    want[0, 15:46] = taps.real
    assert np.allclose(y.fetch(), want, atol=1e-6)


def test_a_matched_filter_peaks_at_the_delay(rng):
    fft = devmath.FFT(1024)
    pulse = np.exp(1j * np.pi * np.arange(200) ** 2 / 200)
    delays = np.array([0, 1, 77, 400, 823])
    echoes = 0.1 * oracle.normal(rng, (len(delays), 1024), np.complex64)
    for echo, delay in zip(echoes, delays, strict=True):
        echo[delay : delay + 200] += pulse
    taps = np.roll(np.pad(pulse.conj()[::-1], (0, 824)), -199)
    assert np.array_equal(np.abs(convolve(fft, echoes, taps)).argmax(axis=1), delays)
