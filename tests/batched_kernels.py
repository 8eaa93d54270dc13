"""Kernels of batches of small products, one text each for the simulator, the compile tests and the GPU."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import cuda

import devmath


def gemm_batched(mm: devmath.Gemm) -> Callable[..., Any]:
    """``c[i] = a[i] @ b[i]`` for a batch of matrices, in registers: kernel(a, b, c)."""

    @cuda.jit
    def kernel(a, b, c):
        sa, sb = devmath.shared(mm.a), devmath.shared(mm.b)
        acc = devmath.accumulator(mm)
        i = devmath.gemm_index(mm)
        devmath.load(a, sa, i)
        devmath.load(b, sb, i)
        devmath.wait(mm)
        devmath.gemm(mm, sa, sb, acc)
        devmath.store(acc, c, i)

    return kernel


def gemm_common(mm: devmath.Gemm) -> Callable[..., Any]:
    """``c[i] = a[i] @ b`` for a batch of a alone: kernel(a, b, c)."""

    @cuda.jit
    def kernel(a, b, c):
        sa, sb = devmath.shared(mm.a), devmath.shared(mm.b.common)
        acc = devmath.accumulator(mm)
        i = devmath.gemm_index(mm)
        devmath.load(b, sb)
        devmath.load(a, sa, i)
        devmath.wait()
        devmath.gemm(mm, sa, sb, acc)
        devmath.store(acc, c, i)

    return kernel


def gemm_batched_tile(mm: devmath.Gemm) -> Callable[..., Any]:
    """``c[i] = alpha * a[i] @ b[i] + beta * c[i]`` for a batch, through tiles, by whatever blocks there are.

    kernel(alpha, a, b, beta, c)
    """
    per_block = mm.gemms_per_block

    @cuda.jit
    def kernel(alpha, a, b, beta, c):
        sa, sb, sc = devmath.shared(mm.a), devmath.shared(mm.b), devmath.shared(mm.c)
        first_of_block = cuda.blockIdx.x * per_block
        own = devmath.gemm_index(mm) - first_of_block
        first = first_of_block
        while first < c.shape[0]:
            devmath.load(a, sa, first + own)
            devmath.load(b, sb, first + own)
            devmath.load(c, sc, first + own)
            devmath.wait(mm)
            devmath.gemm(mm, alpha, sa, sb, beta, sc)
            devmath.wait(mm)
            devmath.store(sc, c, first + own)
            devmath.wait(mm)
            first += cuda.gridDim.x * per_block

    return kernel


def gemm_batched_pipelined(mm: devmath.Gemm) -> Callable[..., Any]:
    """``c[i] = a[i] @ b[i]`` for a batch, by whatever blocks there are, two loads ahead: kernel(a, b, c)."""
    per_block = mm.gemms_per_block

    @cuda.jit
    def kernel(a, b, c):
        sa, sb = devmath.shared(mm.a, stages=3), devmath.shared(mm.b, stages=3)
        acc = devmath.accumulator(mm)
        i, step = devmath.gemm_index(mm), cuda.gridDim.x * per_block
        for s in range(2):
            devmath.load(a, sa[s], i + s * step)
            devmath.load(b, sb[s], i + s * step)
        first, t = cuda.blockIdx.x * per_block, 0
        while first < c.shape[0]:
            devmath.wait(mm, pending=2)
            ahead = (t + 2) % 3
            devmath.load(a, sa[ahead], i + 2 * step)
            devmath.load(b, sb[ahead], i + 2 * step)
            devmath.gemm(mm, sa[t % 3], sb[t % 3], acc)
            devmath.store(acc, c, i)
            for register in range(acc.size):
                acc[register] = 0
            first, i, t = first + step, i + step, t + 1
        devmath.wait(mm)

    return kernel


def gemm_batched_epilog(mm: devmath.Gemm) -> Callable[..., Any]:
    """``c[i] = max(a[i] @ b[i] + bias, 0)`` for every i, matrices by slices: kernel(a, b, bias, c).

    The bias along n is added by `apply`, the rest by hand. The batch fills its blocks.
    """

    @cuda.jit(device=True)
    def plus_bias(x, row, col, bias):
        return x + bias[col]

    @cuda.jit
    def kernel(a, b, bias, c):
        sa, sb = devmath.shared(mm.a), devmath.shared(mm.b)
        acc = devmath.accumulator(mm)
        i = devmath.gemm_index(mm)
        devmath.load(a[i], sa)
        devmath.load(b[i], sb)
        devmath.wait(mm)
        devmath.gemm(mm, sa, sb, acc)
        devmath.apply(plus_bias, acc, bias)
        out = c[i]
        for register in range(acc.size):
            if acc.in_bounds(register):
                out[acc.row(register), acc.col(register)] = max(acc[register], np.float32(0))

    return kernel
