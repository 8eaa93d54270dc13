"""Kernels that work on accumulators, one text each for the simulator, the compile tests and the GPU."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import cuda

import devmath


def add_product(mm: devmath.Gemm) -> Callable[..., Any]:
    """``d = c + a @ b``, c loaded into the accumulator: kernel(a, b, c, d)."""

    @cuda.jit
    def kernel(a, b, c, d):
        sa, sb = devmath.shared(mm.a), devmath.shared(mm.b)
        acc = devmath.accumulator(mm)
        devmath.load(c, acc)
        devmath.load(a, sa)
        devmath.load(b, sb)
        devmath.wait()
        devmath.gemm(mm, sa, sb, acc)
        devmath.store(acc, d)

    return kernel


def through_tile(mm: devmath.Gemm) -> Callable[..., Any]:
    """``d = c``, from an array to an accumulator, to a tile, to another accumulator, to an array: kernel(c, d)."""

    @cuda.jit
    def kernel(c, d):
        tile = devmath.shared(mm.c)
        acc, copy = devmath.accumulator(mm), devmath.accumulator(mm)
        devmath.load(c, acc)
        devmath.store(acc, tile)
        devmath.wait()
        devmath.load(tile, copy)
        devmath.store(copy, d)

    return kernel


@cuda.jit(device=True)
def exp_of_difference(x, row, col, top):
    return math.exp(x - top)


@cuda.jit(device=True)
def quotient(x, row, col, total):
    return x / total


def softmax_rows(mm: devmath.Gemm) -> Callable[..., Any]:
    """``d = softmax(c)`` along rows, c of the shape of the product at most: kernel(c, d)."""

    @cuda.jit
    def kernel(c, d):
        acc = devmath.accumulator(mm)
        devmath.load(c, acc)
        devmath.apply(exp_of_difference, acc, devmath.row_max(acc))
        devmath.apply(quotient, acc, devmath.row_sum(acc))
        devmath.store(acc, d)

    return kernel


@cuda.jit(device=True)
def put_row(x, row, col, value, values):
    values[row] = value
    return x


@cuda.jit(device=True)
def put_col(x, row, col, value, values):
    values[col] = value
    return x


def reductions(mm: devmath.Gemm) -> Callable[..., Any]:
    """Largest, least and sum of the rows and the columns of c, taken twice in a loop: kernel(c, rows, cols).

    ``rows[0, 1, 2, i]`` are those of row i, ``cols[0, 1, 2, j]`` those of column j.
    """

    @cuda.jit
    def kernel(c, rows, cols):
        acc = devmath.accumulator(mm)
        devmath.load(c, acc)
        for _ in range(2):
            devmath.apply(put_row, acc, devmath.row_max(acc), rows[0])
            devmath.apply(put_row, acc, devmath.row_min(acc), rows[1])
            devmath.apply(put_row, acc, devmath.row_sum(acc), rows[2])
            devmath.apply(put_col, acc, devmath.col_max(acc), cols[0])
            devmath.apply(put_col, acc, devmath.col_min(acc), cols[1])
            devmath.apply(put_col, acc, devmath.col_sum(acc), cols[2])

    return kernel


def converted(mm: devmath.Gemm, dtype: Any) -> Callable[..., Any]:
    """``d = c`` and ``sums[i]`` the sum of row i, both by way of registers of `dtype`: kernel(c, d, sums)."""

    @cuda.jit
    def kernel(c, d, sums):
        acc = devmath.accumulator(mm)
        devmath.load(c, acc)
        narrow = devmath.convert(acc, dtype)
        devmath.store(narrow, d)
        devmath.apply(put_row, narrow, devmath.row_sum(narrow), sums)

    return kernel


@cuda.jit(device=True)
def scaled_sum(value, row, other, factor):
    return (value + other) * factor[row]


@cuda.jit(device=True)
def plus_both(x, row, col, by_row, by_col):
    return x + by_row + by_col


def vectors(first: devmath.Gemm, second: devmath.Gemm) -> Callable[..., Any]:
    """``d[i, j] = (s[i] f[i] + s[i]) f[i] + t[j]``, s the row sums of c, t the column sums of e: kernel(c, e, f, d).

    c has the shape of `first`, e and d that of `second`, whose rows are as many but may be dealt out differently.
    """

    @cuda.jit
    def kernel(c, e, f, d):
        acc = devmath.accumulator(first)
        devmath.load(c, acc)
        by_row = devmath.row_vector(first, 0.0)
        for _ in range(2):
            devmath.apply(scaled_sum, by_row, devmath.row_sum(acc), f)
        other = devmath.accumulator(second)
        devmath.load(e, other)
        by_col = devmath.col_sum(other)
        for i in range(other.size):
            other[i] = 0.0
        devmath.apply(plus_both, other, devmath.row_vector(second, by_row), by_col)
        devmath.store(other, d)

    return kernel


@cuda.jit(device=True)
def relu(x, row, col):
    return max(x, np.float32(0.0))


def chained(first: devmath.Gemm, second: devmath.Gemm) -> Callable[..., Any]:
    """``e = 2 relu(a @ b0) @ b1``, the middle handed on in registers, twice as a loop would: kernel(a, b0, b1, e).

    Complex numbers have no relu: there it is ``e = 2 a @ b0 @ b1``.
    """
    dtype, is_real = second.dtype.type, second.dtype.kind != "c"

    @cuda.jit
    def kernel(a, b0, b1, e):
        sa, sb0, sb1 = devmath.shared(first.a), devmath.shared(first.b), devmath.shared(second.b)
        devmath.load(a, sa)
        devmath.load(b0, sb0)
        devmath.load(b1, sb1)
        devmath.wait()
        inner, outer = devmath.accumulator(first), devmath.accumulator(second)
        devmath.gemm(first, sa, sb0, inner)
        if is_real:
            devmath.apply(relu, inner)
        middle = devmath.convert(inner, dtype)
        for _ in range(2):
            devmath.gemm(second, middle, sb1, outer)
        devmath.store(outer, e)

    return kernel


#: Batches of products: shared by lanes of a warp, or one a thread.
BATCHED = [
    devmath.Gemm(8, 8, 8, "float32", execution="warp"),
    devmath.Gemm(5, 12, 9, "float64", execution="warp"),
    devmath.Gemm(16, 16, 16, "float16", execution="warp", gemms_per_block=2),
    devmath.Gemm(3, 4, 2, "complex64", execution="thread"),
]


@cuda.jit(device=True)
def minus_both(x, row, col, of_row, of_col):
    return x - of_row - of_col


def batch(mm: devmath.Gemm) -> Callable[..., Any]:
    """``d[i] = c[i] + a[i] @ b[i]``, less its row sums and its column sums, for a batch: kernel(a, b, c, d)."""

    @cuda.jit
    def kernel(a, b, c, d):
        sa, sb = devmath.shared(mm.a), devmath.shared(mm.b)
        acc, i = devmath.accumulator(mm), devmath.gemm_index(mm)
        devmath.load(c, acc, i)
        devmath.load(a, sa, i)
        devmath.load(b, sb, i)
        devmath.wait(mm)
        devmath.gemm(mm, sa, sb, acc)
        by_row = devmath.row_vector(mm, devmath.row_sum(acc))
        devmath.apply(minus_both, acc, by_row, devmath.col_sum(acc))
        devmath.store(acc, d, i)

    return kernel
