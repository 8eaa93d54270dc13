"""Transforms of the whole table of cases against NumPy in extended precision."""

import numpy as np
import pytest
from numba import cuda

import devmath
from devmath.lto.arch import shared_memory_limit_bytes
from tests import kernels, oracle
from tests.cases import FFT_CASES
from tests.gpu.device_arrays import Output, Twin

pytestmark = pytest.mark.gpu


def run(kernel, fft, x):
    """Transform the rows of x into a poisoned output."""
    y = Output((x.shape[0], fft.n), fft.dtype)
    kernel[fft.grid(x.shape[0]), fft.block_dim](cuda.to_device(x), y.device)
    return y.fetch()


def rows_for(fft):
    """Two full blocks and one that is not, where a block holds several transforms."""
    return 2 * fft.ffts_per_block + 1


def tile_fits(case):
    """Whether a tile of the block's transforms fits beside the exchange buffer."""
    fft = case.descriptor()
    return fft.layout.size_bytes + fft.plan.exchange_bytes <= shared_memory_limit_bytes("sm_90a")


@pytest.mark.parametrize(
    ("case", "make"),
    [(case, kernels.fft_registers) for case in FFT_CASES]
    + [(case, kernels.fft_tile) for case in FFT_CASES if tile_fits(case)],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_forward(case, make, rng):
    fft = case.descriptor()
    x = oracle.normal(rng, (rows_for(fft), fft.n), fft.dtype)
    assert oracle.relative_error(run(make(fft), fft, x), oracle.transform(x)) < oracle.fft_bound(fft.n, fft.dtype)


@pytest.mark.parametrize("case", FFT_CASES, ids=str)
def test_inverse(case, rng):
    fft = case.descriptor().inverse
    x = oracle.normal(rng, (rows_for(fft), fft.n), fft.dtype)
    got, want = run(kernels.fft_registers(fft), fft, x), oracle.transform(x, inverse=True)
    assert oracle.relative_error(got, want) < oracle.fft_bound(fft.n, fft.dtype)


@pytest.mark.parametrize(("n", "dtype"), [(256, "complex64"), (8192, "complex64"), (4096, "complex128")])
def test_high_bins_are_as_accurate_as_low_ones(n, dtype, rng):
    fft = devmath.FFT(n, dtype)
    x = oracle.normal(rng, (64, n), fft.dtype)
    got, want = run(kernels.fft_registers(fft), fft, x), oracle.transform(x)
    lowest, highest = slice(0, n // 4), slice(n - n // 4, n)
    low, high = (oracle.relative_error(got[:, bins], want[:, bins]) for bins in (lowest, highest))
    assert oracle.relative_error(got, want) < oracle.fft_bound(n, dtype)
    assert high < 3 * low


@pytest.mark.parametrize("make", [kernels.fft_registers, kernels.fft_tile])
@pytest.mark.parametrize("n", [16, 512, 4096])
def test_in_place(n, make, rng):
    fft = devmath.FFT(n)
    x = oracle.normal(rng, (rows_for(fft), n), fft.dtype)
    array = Output(x.shape, fft.dtype, fill=x)
    make(fft)[fft.grid(len(x)), fft.block_dim](array.device, array.device)
    assert oracle.relative_error(array.fetch(), oracle.transform(x)) < oracle.fft_bound(n, fft.dtype)


def test_two_points():
    fft = devmath.FFT(2)
    x = np.array([[3 + 1j, 1 - 2j]], np.complex64)
    assert np.array_equal(run(kernels.fft_registers(fft), fft, x), [[4 - 1j, 2 + 3j]])


def test_no_rows_do_nothing():
    fft = devmath.FFT(64)
    assert run(kernels.fft_registers(fft), fft, np.empty((0, 64), np.complex64)).shape == (0, 64)


def test_one_row_of_one_dimension(rng):
    fft = devmath.FFT(128)
    x = oracle.normal(rng, (128,), fft.dtype)
    y = cuda.to_device(np.full(128, np.nan, fft.dtype))
    kernels.fft_registers(fft)[1, fft.block_dim](cuda.to_device(x), y)
    assert oracle.relative_error(y.copy_to_host(), oracle.transform(x)) < oracle.fft_bound(128, fft.dtype)


VIEWS = {
    "reversed in time": lambda x: x[:9, 255::-1],
    "rows in reverse": lambda x: x[8::-1, :256],
    "every second element": lambda x: x[:9, :512:2],
    "transposed": lambda x: x.T[:9, :256],
    "one element beside alignment": lambda x: x[1:10, 1:257],
}


@pytest.fixture(scope="module")
def transform_of_views():
    """Return a descriptor and a kernel, compiled once for all strides."""
    fft = devmath.FFT(256)
    return fft, kernels.fft_registers(fft)


@pytest.mark.parametrize("view", VIEWS)
def test_rows_of_any_strides(transform_of_views, view, rng):
    fft, kernel = transform_of_views
    whole_x = oracle.normal(rng, (600, 602), fft.dtype)
    whole_y = np.full_like(whole_x, 7)
    twin_x, twin_y = Twin(whole_x), Twin(whole_y)
    x, y = VIEWS[view](whole_x), VIEWS[view](whole_y)
    kernel[fft.grid(len(x)), fft.block_dim](twin_x.view(x), twin_y.view(y))
    got = twin_y.fetch()
    y[...] = VIEWS[view](got)  # nothing beside the view may differ
    assert np.array_equal(got, whole_y)
    assert oracle.relative_error(y, oracle.transform(x)) < oracle.fft_bound(256, fft.dtype)


@pytest.mark.parametrize("ffts_per_block", [1, 2, 4, 8])
def test_a_bad_element_stays_in_its_row(ffts_per_block, rng):
    fft = devmath.FFT(256, ffts_per_block=ffts_per_block)
    kernel = kernels.fft_registers(fft)
    for rows in sorted({1, max(1, ffts_per_block - 1), 2 * ffts_per_block + 6}):
        good = oracle.normal(rng, (rows, 256), fft.dtype)
        bad = good.copy()
        for row, element, value in ((3, 17, np.nan), (5, 0, np.inf)):
            bad[row % rows, element] = value
        spoilt = ~np.isfinite(bad).all(axis=1)
        got, clean = run(kernel, fft, bad), run(kernel, fft, good)
        assert not np.isfinite(got[spoilt]).any()
        assert np.array_equal(got[~spoilt], clean[~spoilt])
        assert np.isfinite(clean).all()
