"""Kernels that work on accumulators, one text each for the simulator, the compile tests and the GPU."""

from collections.abc import Callable
from typing import Any

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
