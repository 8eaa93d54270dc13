"""The kernels under test, one text each for the simulator, the compile tests and the GPU."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import cuda, types

import devmath


def gemm_tile(mm: devmath.Gemm) -> Callable[..., Any]:
    """``c = alpha * a @ b + beta * c`` through tiles in shared memory: kernel(alpha, a, b, beta, c)."""

    @cuda.jit
    def kernel(alpha, a, b, beta, c):
        sa, sb, sc = devmath.shared(mm.a), devmath.shared(mm.b), devmath.shared(mm.c)
        devmath.load(a, sa)
        devmath.load(b, sb)
        devmath.load(c, sc)
        devmath.wait()
        devmath.gemm(mm, alpha, sa, sb, beta, sc)
        devmath.wait()
        devmath.store(sc, c)

    return kernel


def gemm_accumulator(mm: devmath.Gemm) -> Callable[..., Any]:
    """``c = a @ b`` for any k, in registers: kernel(a, b, c)."""

    @cuda.jit
    def kernel(a, b, c):
        sa, sb = devmath.shared(mm.a), devmath.shared(mm.b)
        acc = devmath.accumulator(mm)
        for k0 in range(0, a.shape[1], mm.k):
            devmath.load(a[:, k0:], sa)
            devmath.load(b[k0:, :], sb)
            devmath.wait()
            devmath.gemm(mm, sa, sb, acc)
            devmath.wait()
        devmath.store(acc, c)

    return kernel


def gemm_bias(mm: devmath.Gemm) -> Callable[..., Any]:
    """``c = relu(a @ b + bias)``, the bias along n, by `apply`: kernel(a, b, bias, c)."""

    @cuda.jit(device=True)
    def bias_relu(x, row, col, bias):
        return max(x + bias[col], np.float32(0.0))

    @cuda.jit
    def kernel(a, b, bias, c):
        sa, sb = devmath.shared(mm.a), devmath.shared(mm.b)
        acc = devmath.accumulator(mm)
        devmath.load(a, sa)
        devmath.load(b, sb)
        devmath.wait()
        devmath.gemm(mm, sa, sb, acc)
        devmath.apply(bias_relu, acc, bias)
        devmath.store(acc, c)

    return kernel


def gemm_repeated(mm: devmath.Gemm) -> Callable[..., Any]:
    """``c[block] = repeats * (a @ b)``, operands loaded once, no barrier between products: kernel(a, b, c, repeats)."""

    @cuda.jit
    def kernel(a, b, c, repeats):
        sa, sb = devmath.shared(mm.a), devmath.shared(mm.b)
        devmath.load(a, sa)
        devmath.load(b, sb)
        devmath.wait()
        acc = devmath.accumulator(mm)
        for _ in range(repeats):
            devmath.gemm(mm, sa, sb, acc)
        devmath.store(acc, c[cuda.blockIdx.x])

    return kernel


def gemm_by_hand(mm: devmath.Gemm) -> Callable[..., Any]:
    """``c = max(a @ b + bias, 0)`` by a loop over the accumulator, each element stored by itself."""

    @cuda.jit
    def kernel(a, b, bias, c):
        sa, sb = devmath.shared(mm.a), devmath.shared(mm.b)
        acc = devmath.accumulator(mm)
        devmath.load(a, sa)
        devmath.load(b, sb)
        devmath.wait()
        devmath.gemm(mm, sa, sb, acc)
        for i in range(acc.size):
            if acc.in_bounds(i):
                acc[i] = max(acc[i] + bias[acc.col(i)], np.float32(0.0))
                c[acc.row(i), acc.col(i)] = acc[i]

    return kernel


def fft_registers(fft: devmath.FFT) -> Callable[..., Any]:
    """Transform the rows of x, in registers: kernel(x, y)."""

    @cuda.jit
    def kernel(x, y):
        v = devmath.registers(fft)
        row = devmath.transform_index(fft)
        devmath.load(x, v, row)
        devmath.fft(fft, v)
        devmath.store(v, y, row)

    return kernel


def fft_tile(fft: devmath.FFT) -> Callable[..., Any]:
    """Transform the rows of x, in shared memory: kernel(x, y)."""
    rows_per_block = fft.ffts_per_block

    @cuda.jit
    def kernel(x, y):
        tile = devmath.shared(fft)
        first = cuda.blockIdx.x * rows_per_block
        devmath.load(x[first:], tile)
        devmath.wait()
        devmath.fft(fft, tile)
        devmath.wait()
        devmath.store(tile, y[first:])

    return kernel


def fft_pipelined(fft: devmath.FFT) -> Callable[..., Any]:
    """`fft_tile` with a grid of any size: a block's next rows are on their way while it transforms: kernel(x, y)."""
    rows_per_block = fft.ffts_per_block

    @cuda.jit
    def kernel(x, y):
        tiles = devmath.shared(fft, stages=2)
        first, step = cuda.blockIdx.x * rows_per_block, cuda.gridDim.x * rows_per_block
        s = 0
        devmath.load(x[first:], tiles[s])
        while first < x.shape[0]:
            devmath.wait()
            devmath.load(x[first + step :], tiles[s ^ 1])
            devmath.fft(fft, tiles[s])
            devmath.wait(pending=1)
            devmath.store(tiles[s], y[first:])
            first, s = first + step, s ^ 1

    return kernel


def convolve(fft: devmath.FFT) -> Callable[..., Any]:
    """Multiply the spectrum of each row by h, and transform back (unnormalised): kernel(x, h, y)."""

    @cuda.jit
    def kernel(x, h, y):
        v = devmath.registers(fft)
        row = devmath.transform_index(fft)
        devmath.load(x, v, row)
        devmath.fft(fft, v)
        for i in range(v.size):
            v[i] *= h[v.index(i)]
        devmath.fft(fft.inverse, v)
        devmath.store(v, y, row)

    return kernel


def tiles_in_device_functions(mm: devmath.Gemm) -> Callable[..., Any]:
    """``total[w] = x[w] + 2 y[w]`` and ``product[w] = y[w] @ x[w]`` in block w: kernel(x, y, total, product).

    The square tiles are made in two device functions, each called twice.
    """

    def loader(operand):
        @cuda.jit(device=True)
        def load(array):
            tile = devmath.shared(operand)
            devmath.load(array, tile)
            devmath.wait()
            return tile

        return load

    load_first, load_second = loader(mm.a), loader(mm.b)
    size, threads = mm.m, mm.threads

    @cuda.jit
    def kernel(x, y, total, product):
        w = cuda.blockIdx.x
        first, second = load_first(x[w]), load_second(y[w])
        for element in range(cuda.threadIdx.x, size * size, threads):
            i, j = element // size, element % size
            total[w, i, j] = first[i, j] + np.float32(2) * second[i, j]
        devmath.wait()
        first, second = load_first(y[w]), load_second(x[w])
        acc = devmath.accumulator(mm)
        devmath.gemm(mm, first, second, acc)
        devmath.store(acc, product[w])

    return kernel


def tile_elements(mm: devmath.Gemm) -> Callable[..., Any]:
    """Each element of A by itself: ``values = a``, and in the tile ``doubled = 2 a``: kernel(a, values, doubled)."""
    size, cols, threads = mm.m * mm.k, mm.k, mm.threads

    @cuda.jit
    def kernel(a, values, doubled):
        tile = devmath.shared(mm.a)
        devmath.load(a, tile)
        devmath.wait()
        for element in range(cuda.threadIdx.x, size, threads):
            i, j = element // cols, element % cols
            x = tile[i, j]
            values[i, j] = x
            tile[i, j] = x + x
        devmath.wait()
        devmath.store(tile, doubled)

    return kernel


def gemm_grid(mm: devmath.Gemm) -> Callable[..., Any]:
    """``c = a @ b`` for matrices of any size, block (x, y) at column x and row y of the tiles of c: kernel(a, b, c)."""

    @cuda.jit
    def kernel(a, b, c):
        sa, sb = devmath.shared(mm.a), devmath.shared(mm.b)
        acc = devmath.accumulator(mm)
        row, col = cuda.blockIdx.y * mm.m, cuda.blockIdx.x * mm.n
        for k0 in range(0, a.shape[1], mm.k):
            devmath.load(a[row:, k0:], sa)
            devmath.load(b[k0:, col:], sb)
            devmath.wait()
            devmath.gemm(mm, sa, sb, acc)
            devmath.wait()
        devmath.store(acc, c[row:, col:])

    return kernel


def gemm_pipelined(mm: devmath.Gemm, stages: int) -> Callable[..., Any]:
    """`gemm_grid` with the loads of ``stages - 1`` steps under way, and one wait a step: kernel(a, b, c)."""
    ahead, pending = stages - 1, 2 * (stages - 2)

    @cuda.jit
    def kernel(a, b, c):
        sa, sb = devmath.shared(mm.a, stages=stages), devmath.shared(mm.b, stages=stages)
        acc = devmath.accumulator(mm)
        row, col = cuda.blockIdx.y * mm.m, cuda.blockIdx.x * mm.n
        for s in range(ahead):
            devmath.load(a[row:, s * mm.k :], sa[s])
            devmath.load(b[s * mm.k :, col:], sb[s])
        for t in range((a.shape[1] + mm.k - 1) // mm.k):
            devmath.wait(pending=pending)
            k0, s = (t + ahead) * mm.k, (t + ahead) % stages
            devmath.load(a[row:, k0:], sa[s])
            devmath.load(b[k0:, col:], sb[s])
            devmath.gemm(mm, sa[t % stages], sb[t % stages], acc)
        devmath.wait()
        devmath.store(acc, c[row:, col:])

    return kernel


def gemm_double_buffered(mm: devmath.Gemm) -> Callable[..., Any]:
    """`gemm_grid` with two stages, loaded before the wait for the stage before, so that a step has two waits."""

    @cuda.jit
    def kernel(a, b, c):
        sa, sb = devmath.shared(mm.a, 2), devmath.shared(mm.b, 2)
        acc = devmath.accumulator(mm)
        row, col = cuda.blockIdx.y * mm.m, cuda.blockIdx.x * mm.n
        s = 0
        devmath.load(a[row:, :], sa[s])
        devmath.load(b[:, col:], sb[s])
        for k0 in range(mm.k, a.shape[1] + mm.k, mm.k):
            devmath.load(a[row:, k0:], sa[s ^ 1])
            devmath.load(b[k0:, col:], sb[s ^ 1])
            devmath.wait(pending=2)
            devmath.gemm(mm, sa[s], sb[s], acc)
            devmath.wait(pending=2)
            s ^= 1
        devmath.wait()
        devmath.store(acc, c[row:, col:])

    return kernel


def gemm_plain(mm: devmath.Gemm, view: bool = False) -> Callable[..., Any]:
    """`gemm_tile` through ``cuda.shared.array``s with longer lines than needed, or views into the middle of such.

    kernel(alpha, a, b, beta, c), each array as memory lies: transposed for an operand of order "col".
    """
    dtype, result = (getattr(types, each.name) for each in (mm.dtype, mm.c_dtype))
    layouts = tuple(operand.layout for operand in (mm.a, mm.b, mm.c))
    (rows_a, cols_a), (rows_b, cols_b), (rows_c, cols_c) = ((x.lines, x.line_length) for x in layouts)
    extents_a, extents_b, extents_c = ((x.lines + 1, x.line_length + 5) for x in layouts)
    threads = mm.threads

    @cuda.jit(device=True)
    def copy(source, target):
        for i in range(min(source.shape[0], target.shape[0])):
            for j in range(cuda.threadIdx.x, min(source.shape[1], target.shape[1]), threads):
                target[i, j] = source[i, j]

    @cuda.jit(device=True)
    def multiply(alpha, a, smem_a, b, smem_b, beta, c, smem_c):
        copy(a, smem_a)
        copy(b, smem_b)
        copy(c, smem_c)
        devmath.wait()
        devmath.gemm(mm, alpha, smem_a, smem_b, beta, smem_c)
        devmath.wait()
        copy(smem_c, c)

    @cuda.jit
    def padded(alpha, a, b, beta, c):
        smem_a = cuda.shared.array(extents_a, dtype)
        smem_b = cuda.shared.array(extents_b, dtype)
        smem_c = cuda.shared.array(extents_c, result)
        multiply(alpha, a, smem_a, b, smem_b, beta, c, smem_c)

    @cuda.jit
    def in_views(alpha, a, b, beta, c):
        smem_a = cuda.shared.array(extents_a, dtype)[1 : 1 + rows_a, 3 : 3 + cols_a]
        smem_b = cuda.shared.array(extents_b, dtype)[1 : 1 + rows_b, 3 : 3 + cols_b]
        smem_c = cuda.shared.array(extents_c, result)[1 : 1 + rows_c, 3 : 3 + cols_c]
        multiply(alpha, a, smem_a, b, smem_b, beta, c, smem_c)

    return in_views if view else padded


def gemm_chained(first: devmath.Gemm, second: devmath.Gemm) -> Callable[..., Any]:
    """``e = relu(a @ b0) @ b1``, rows of a by blocks of first.m, the middle in a tile: kernel(a, b0, b1, e)."""

    @cuda.jit(device=True)
    def relu(x, row, col):
        return max(x, np.float32(0.0))

    @cuda.jit
    def kernel(a, b0, b1, e):
        sa, sb0 = devmath.shared(first.a), devmath.shared(first.b)
        middle, sb1 = devmath.shared(second.a), devmath.shared(second.b)
        row = cuda.blockIdx.x * first.m
        devmath.load(b1, sb1)
        inner = devmath.accumulator(first)
        for k0 in range(0, a.shape[1], first.k):
            devmath.load(a[row:, k0:], sa)
            devmath.load(b0[k0:, :], sb0)
            devmath.wait()
            devmath.gemm(first, sa, sb0, inner)
            devmath.wait()
        devmath.apply(relu, inner)
        devmath.store(inner, middle)
        devmath.wait()
        outer = devmath.accumulator(second)
        devmath.gemm(second, middle, sb1, outer)
        devmath.store(outer, e[row:, :])

    return kernel


def fft_with_local_memory(fft: devmath.FFT) -> Callable[..., Any]:
    """Transform rows beside an array that no registers can hold, since a run-time number indexes it.

    ``out[t] = (t - i) % 256`` for thread t: kernel(i, x, y, out).
    """

    @cuda.jit
    def kernel(i, x, y, out):
        ring = cuda.local.array(256, np.int32)
        for j in range(256):
            ring[(i + j) % 256] = j
        v = devmath.registers(fft)
        row = devmath.transform_index(fft)
        devmath.load(x, v, row)
        devmath.fft(fft, v)
        devmath.store(v, y, row)
        out[cuda.threadIdx.x] = ring[cuda.threadIdx.x % 256]

    return kernel
