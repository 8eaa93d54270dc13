"""The kernels that devmath promises to run as they are written here, in every tier."""

import math

import numpy as np
from numba import cuda

import devmath
from tests.oracle import normal, product, relative_error, transform

mm = devmath.Gemm(m=32, n=32, k=64, dtype=np.float32)
layer = devmath.Gemm(m=128, n=256, k=64, dtype=np.float16, b_order="col", mainloop=True)
fft = devmath.FFT(256, dtype=np.complex64)


@cuda.jit
def tile_product(a, b, c):
    sa, sb, sc = devmath.shared(mm.a), devmath.shared(mm.b), devmath.shared(mm.c)
    devmath.load(a, sa)
    devmath.load(b, sb)
    devmath.wait()
    devmath.gemm(mm, 1.0, sa, sb, 0.0, sc)
    devmath.wait()
    devmath.store(sc, c)


@cuda.jit(device=True)
def bias_relu(x, row, col, bias):
    return max(x + bias[col], 0.0)


@cuda.jit
def product_with_epilog(a, b, c, bias):
    sa, sb = devmath.shared(mm.a), devmath.shared(mm.b)
    acc = devmath.accumulator(mm)
    for k0 in range(0, a.shape[1], mm.k):
        devmath.load(a[:, k0:], sa)
        devmath.load(b[k0:, :], sb)
        devmath.wait()
        devmath.gemm(mm, sa, sb, acc)
        devmath.wait()
    devmath.apply(bias_relu, acc, bias)
    for i in range(acc.size):
        acc[i] = max(acc[i] + bias[acc.col(i)], 0.0)
    devmath.store(acc, c)


@cuda.jit(device=True)
def gelu(x):
    inner = np.float32(0.7978845608) * (x + np.float32(0.044715) * x * x * x)
    return np.float32(0.5) * x * (np.float32(1) + math.tanh(inner))


@cuda.jit(device=True)
def gelu_bias(x, row, col, bias):
    return gelu(x + bias[col])


@cuda.jit
def linear(a, b, c, bias):
    acc = devmath.accumulator(layer)
    for t in devmath.tiles(layer, a, b, c):
        devmath.mainloop(layer, t, acc)
        devmath.apply(gelu_bias, acc, t, bias)
        devmath.store(acc, c, t)


@cuda.jit
def convolve(x, h, y):
    v = devmath.registers(fft)
    row = devmath.transform_index(fft)
    devmath.load(x, v, row)
    devmath.fft(fft, v)
    for i in range(v.size):
        v[i] *= h[v.index(i)]
    devmath.fft(fft.inverse, v)
    devmath.store(v, y, row)


def check_tile_product(rng: np.random.Generator) -> None:
    a, b = normal(rng, (32, 64), np.float32), normal(rng, (64, 32), np.float32)
    c = np.full((32, 32), np.nan, np.float32)
    tile_product[1, mm.block_dim](a, b, c)
    assert relative_error(c, product(a, b)) < 1e-5


def check_product_with_epilog(rng: np.random.Generator) -> None:
    a, b = normal(rng, (32, 150), np.float32), normal(rng, (150, 32), np.float32)
    bias, c = normal(rng, (32,), np.float32), np.full((32, 32), np.nan, np.float32)
    product_with_epilog[1, mm.block_dim](a, b, c, bias)
    once = np.maximum(product(a, b) + bias, 0)
    assert relative_error(c, np.maximum(once + bias, 0)) < 1e-5


def check_linear(rng: np.random.Generator) -> None:
    m, n, k = 150, 300, 100
    a, b = normal(rng, (m, k), np.float16), np.asarray(normal(rng, (k, n), np.float16), order="F")
    bias, c = normal(rng, (n,), np.float32), cuda.to_device(np.full((m, n), np.nan, np.float32))
    operands = layer.operands(cuda.to_device(a), cuda.to_device(b), c)
    linear[layer.grid(m, n), layer.block_dim](*operands, cuda.to_device(bias))
    x = product(a, b) + bias
    want = x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3))) / 2
    assert relative_error(c.copy_to_host(), want) < 1e-5


def check_convolve(rng: np.random.Generator) -> None:
    x, h = normal(rng, (2 * fft.ffts_per_block + 1, 256), np.complex64), normal(rng, (256,), np.complex64)
    y = np.full_like(x, np.nan)
    convolve[fft.grid(x.shape[0]), fft.block_dim](x, h, y)
    assert relative_error(y, transform(transform(x) * h, inverse=True)) < 1e-5


CHECKS = (check_tile_product, check_product_with_epilog, check_linear, check_convolve)
