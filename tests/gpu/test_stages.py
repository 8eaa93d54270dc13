"""Stacks of tiles on the GPU: loads under way while others are multiplied, at edge sizes, in both kinds of memory."""

import numpy as np
import pytest
from numba import cuda

import devmath
from tests import kernels, oracle
from tests.gpu.device_arrays import Output, on_device

pytestmark = pytest.mark.gpu

KERNELS = {
    "double buffered": kernels.gemm_double_buffered,
    "2 stages": lambda mm: kernels.gemm_pipelined(mm, 2),
    "3 stages": lambda mm: kernels.gemm_pipelined(mm, 3),
    "4 stages": lambda mm: kernels.gemm_pipelined(mm, 4),
}
# float16 by wgmma with each swizzle, and with lines of no power of two; every other variant; elements of 16 bytes.
PRODUCTS = (
    devmath.Gemm(64, 64, 16, "float16"),
    devmath.Gemm(64, 64, 32, "float16", b_order="col"),
    devmath.Gemm(128, 128, 64, "bfloat16", a_order="col"),
    devmath.Gemm(64, 104, 32, "float16"),
    devmath.Gemm(50, 40, 24, "float16"),
    devmath.Gemm(64, 64, 16, "float32"),
    devmath.Gemm(64, 64, 16, "float32", math="3xtf32"),
    devmath.Gemm(32, 32, 16, "float64"),
    devmath.Gemm(33, 47, 19, "complex64", b_order="col"),
    devmath.Gemm(32, 32, 8, "complex128"),
)


def multiply(mm, kernel, sizes, rng):
    """Multiply matrices of any size; the error, and the bound that it must keep."""
    m, n, k = sizes
    a, b = oracle.normal(rng, (m, k), mm.dtype), oracle.normal(rng, (k, n), mm.dtype)
    c = Output((m, n), mm.c_dtype)
    kernel[(-(-n // mm.n), -(-m // mm.m)), mm.block_dim](on_device(a), on_device(b), c.device)
    return oracle.gemm_error(c.fetch(), oracle.product(a, b)), oracle.GEMM_BOUND[mm.c_dtype.name]


@pytest.mark.parametrize("make", KERNELS)
@pytest.mark.parametrize("mm", PRODUCTS, ids=repr)
def test_products_of_any_size(mm, make, rng):
    kernel = KERNELS[make](mm)
    # Aligned rows, then rows that no 16-byte copy can take; fewer steps than stages, and many.
    for sizes in ((2 * mm.m, 2 * mm.n, 16 * mm.k), (mm.m + 1, mm.n + 3, 7 * mm.k + 5), (mm.m - 1, mm.n, 1)):
        error, bound = multiply(mm, kernel, sizes, rng)
        assert error < bound, sizes


@pytest.mark.parametrize("make", KERNELS)
def test_stages_in_dynamic_memory(make, rng, monkeypatch):
    monkeypatch.setattr("devmath.frontends.numba_cuda.kernel.static_is_unlimited", lambda _: False)
    mm = devmath.Gemm(128, 128, 64, "float16")
    error, bound = multiply(mm, KERNELS[make](mm), (300, 200, 1000), rng)
    assert error < bound


def test_many_blocks_and_steps(rng):
    mm = devmath.Gemm(64, 64, 32, "float16")
    a, b = (rng.integers(-2, 3, (1024, 1024)).astype(np.float16) for _ in range(2))
    want = oracle.product(a, b)
    for make in KERNELS.values():
        kernel, c = make(mm), Output((1024, 1024), np.float32)
        for _ in range(20):
            kernel[(16, 16), mm.block_dim](on_device(a), on_device(b), c.device)
            assert np.array_equal(c.fetch(), want)


@pytest.mark.parametrize("fft", [devmath.FFT(64), devmath.FFT(1024), devmath.FFT(4096), devmath.FFT(256, "complex128")])
def test_transforms_of_any_number_of_rows(fft, rng):
    kernel = kernels.fft_pipelined(fft)
    for count in (1, 3 * fft.ffts_per_block + 1, 41):
        x = oracle.normal(rng, (count, fft.n), fft.dtype)
        y = Output(x.shape, fft.dtype)
        kernel[3, fft.block_dim](on_device(x), y.device)
        assert oracle.relative_error(y.fetch(), oracle.transform(x)) < oracle.fft_bound(fft.n, fft.dtype)


def test_wait_lands_all_but_the_newest(rng):
    """Reading a stage right after the wait that lands it: many blocks, so that copies queue."""
    mm = devmath.Gemm(64, 64, 64, "float32")
    rows, cols, threads = mm.m, mm.k, mm.threads

    @cuda.jit
    def kernel(x, y):
        stack = devmath.shared(mm.a, stages=3)
        first = 3 * cuda.blockIdx.x * rows
        for s in range(3):
            devmath.load(x[first + s * rows :], stack[s])
        devmath.wait(pending=2)
        for e in range(cuda.threadIdx.x, rows * cols, threads):
            y[first + e // cols, e % cols] = stack[0][e // cols, e % cols]
        devmath.wait(pending=1)
        devmath.store(stack[1], y[first + rows :])
        devmath.wait(pending=0)
        devmath.store(stack[2], y[first + 2 * rows :])

    x = oracle.normal(rng, (3 * rows * 500, cols), np.float32)
    y = Output(x.shape, np.float32)
    kernel[500, mm.block_dim](on_device(x), y.device)
    assert np.array_equal(y.fetch(), x)
