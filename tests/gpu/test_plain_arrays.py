"""``cuda.shared.array``s as operands: lines longer than needed, and views, in every order and of every variant."""

import numpy as np
import pytest
from numba import cuda
from numba.cuda import types

import devmath
from tests import kernels, oracle
from tests.cases import ORDERS
from tests.gpu.device_arrays import Output, on_device

pytestmark = pytest.mark.gpu

SHAPES = {"float16": (64, 64, 32), "float32": (33, 47, 19), "float64": (32, 24, 16), "complex64": (20, 27, 9)}


def as_memory_lies(x, order):
    return np.ascontiguousarray(x.T if order == "col" else x)


@pytest.mark.parametrize("view", [False, True])
@pytest.mark.parametrize("orders", ORDERS, ids="".join)
@pytest.mark.parametrize("dtype", SHAPES)
def test_longer_lines_in_every_order(dtype, orders, view, rng):
    mm = devmath.Gemm(*SHAPES[dtype], dtype, *orders)
    (a, b), c = oracle.operands(rng, mm), oracle.normal(rng, (mm.m, mm.n), mm.c_dtype)
    want = 2 * oracle.product(a, b) - 0.5 * c
    a, b, c = (as_memory_lies(x, order) for x, order in zip((a, b, c), orders, strict=True))
    out = Output(c.shape, mm.c_dtype, fill=c)
    scalar = mm.accumulator_dtype.type
    kernels.gemm_plain(mm, view)[1, mm.block_dim](scalar(2), on_device(a), on_device(b), scalar(-0.5), out.device)
    got = out.fetch()
    assert oracle.relative_error(got.T if orders[2] == "col" else got, want) < 2 * oracle.GEMM_BOUND[mm.c_dtype.name]


def test_a_transform_of_a_view(rng):
    fft = devmath.FFT(64)
    rows, threads = fft.ffts_per_block, fft.threads

    @cuda.jit
    def kernel(x, y):
        data = cuda.shared.array((rows, 70), types.complex64)[:, 3:67]
        for e in range(cuda.threadIdx.x, rows * 64, threads):
            data[e // 64, e % 64] = x[e // 64, e % 64]
        devmath.wait()
        devmath.fft(fft, data)
        devmath.wait()
        for e in range(cuda.threadIdx.x, rows * 64, threads):
            y[e // 64, e % 64] = data[e // 64, e % 64]

    x = oracle.normal(rng, (rows, 64), fft.dtype)
    y = Output(x.shape, fft.dtype)
    kernel[1, fft.block_dim](on_device(x), y.device)
    assert oracle.relative_error(y.fetch(), oracle.transform(x)) < oracle.fft_bound(64, fft.dtype)
