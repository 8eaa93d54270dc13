"""Whole matrix products: the cases, shapes and kernels that every tier runs."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import cuda

import devmath
from tests.oracle import gemm_bound, normal, product

ORDERS = (("row", "row"), ("row", "col"), ("col", "row"), ("col", "col"))


def _mainloop(m: int, n: int, k: int, dtype: str, **fields: Any) -> devmath.Gemm:
    return devmath.Gemm(m, n, k, dtype, mainloop=True, **fields)


#: By TMA where the target has it.
FAST = (
    *(_mainloop(128, 256, 64, "float16", a_order=a, b_order=b) for a, b in ORDERS),
    _mainloop(128, 256, 64, "bfloat16", b_order="col"),
    _mainloop(128, 256, 64, "bfloat16", a_order="col"),
    _mainloop(128, 128, 64, "float16"),
    _mainloop(64, 256, 64, "bfloat16", b_order="col"),
    _mainloop(64, 64, 32, "float16", a_order="col"),
    _mainloop(192, 128, 64, "float16", threads=384),
    _mainloop(256, 128, 32, "float16", threads=512),
    _mainloop(100, 72, 48, "float16"),
    _mainloop(128, 256, 128, "int8", b_order="col", b_dtype="uint8"),
    _mainloop(128, 128, 128, "float8_e4m3fn", b_order="col", b_dtype="float8_e5m2"),
)
#: Every other type, by cp.async everywhere.
PORTABLE = (
    _mainloop(128, 128, 32, "float32"),
    _mainloop(64, 64, 16, "float32", a_order="col", b_order="col"),
    _mainloop(128, 128, 32, "float32", math="tf32", b_order="col"),
    _mainloop(64, 64, 32, "float32", math="3xtf32"),
    _mainloop(64, 64, 16, "float64", b_order="col"),
    _mainloop(64, 64, 16, "complex64", b_conj=True),
    _mainloop(32, 32, 16, "complex128", a_order="col"),
    _mainloop(33, 47, 19, "float16"),
    _mainloop(128, 128, 64, "int8"),
)
CASES = (*FAST, *PORTABLE)
#: Cheap enough for the simulator.
SMALL = (
    *(_mainloop(16, 32, 8, "float16", a_order=a, b_order=b) for a, b in ORDERS),
    _mainloop(16, 16, 16, "bfloat16"),
    _mainloop(16, 16, 8, "complex64", a_conj=True),
    _mainloop(9, 7, 5, "float32"),
    _mainloop(16, 16, 32, "int8", b_order="col"),
)


def shapes(mm: devmath.Gemm) -> tuple[tuple[int, int, int], ...]:
    """Extents of whole matrices: at, below and above the tile's, one element, none."""
    m, n, k = mm.m, mm.n, mm.k
    return (
        (m, n, k),
        (2 * m, 3 * n, 4 * k),
        (m + 1, n + 8, k + 8),
        (3 * m - 1, 2 * n + 3, 5 * k + 1),
        (1, 1, 1),
        (m // 2, 3 * n, 2 * k - 8),
        (m, n, 0),
        (0, n, k),
    )


def linear(mm: devmath.Gemm) -> Callable[..., Any]:
    """``c = relu(a @ b + bias)``: kernel(a, b, c, bias), the promised form."""
    zero = mm.accumulator_dtype.type(0)

    @cuda.jit(device=True)
    def relu_bias(x, row, col, bias):
        return max(x + bias[col], zero)

    @cuda.jit
    def kernel(a, b, c, bias):
        acc = devmath.accumulator(mm)
        for t in devmath.tiles(mm, a, b, c):
            devmath.mainloop(mm, t, acc)
            devmath.apply(relu_bias, acc, t, bias)
            devmath.store(acc, c, t)

    return kernel


def plain(mm: devmath.Gemm) -> Callable[..., Any]:
    """``c = a @ b``: kernel(a, b, c)."""

    @cuda.jit
    def kernel(a, b, c):
        acc = devmath.accumulator(mm)
        for t in devmath.tiles(mm, a, b, c):
            devmath.mainloop(mm, t, acc)
            devmath.store(acc, c, t)

    return kernel


def upper_triangle(mm: devmath.Gemm) -> Callable[..., Any]:
    """``c = a @ b`` in the tiles on and above the diagonal alone; ``visits[row, col] += 1`` for all of C."""

    @cuda.jit(device=True)
    def count(x, row, col, visits):
        visits[row, col] += 1
        return x

    @cuda.jit
    def kernel(a, b, c, visits):
        acc = devmath.accumulator(mm)
        for t in devmath.tiles(mm, a, b, c):
            devmath.apply(count, acc, t, visits)
            if t.row >= t.col + mm.n:
                continue
            devmath.mainloop(mm, t, acc)
            devmath.store(acc, c, t)

    return kernel


def centred(mm: devmath.Gemm) -> Callable[..., Any]:
    """``c = a @ b`` less the mean of each row of a tile, whole tiles only: kernel(a, b, c)."""
    share = mm.accumulator_dtype.type(1 / mm.n)

    @cuda.jit(device=True)
    def subtract(x, row, col, total):
        return x - total * share

    @cuda.jit
    def kernel(a, b, c):
        acc = devmath.accumulator(mm)
        for t in devmath.tiles(mm, a, b, c):
            devmath.mainloop(mm, t, acc)
            devmath.apply(subtract, acc, t, devmath.row_sum(acc))
            devmath.store(acc, c, t)

    return kernel


def centred_rows(c: np.ndarray, mm: devmath.Gemm) -> np.ndarray:
    """What `centred` makes of a product."""
    tiles = c.reshape(c.shape[0], -1, mm.n)
    return (tiles - tiles.mean(axis=2, keepdims=True)).reshape(c.shape)


def matrices(rng: np.random.Generator, mm: devmath.Gemm, m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Random A and B in the orders of a descriptor."""
    letters = {"row": "C", "col": "F"}
    a = np.asarray(normal(rng, (m, k), mm.dtype), order=letters[mm.a_order])
    return a, np.asarray(normal(rng, (k, n), mm.b_dtype), order=letters[mm.b_order])


def result_dtype(mm: devmath.Gemm) -> np.dtype:
    """Type of results under test: that of A where it has 16 bits, else that of the sums."""
    return mm.dtype if mm.dtype.itemsize == 2 else mm.accumulator_dtype


def bound(mm: devmath.Gemm, result: Any) -> float:
    """Bound of the relative L2 error."""
    return max(gemm_bound(mm, result), gemm_bound(mm, mm.accumulator_dtype), 2e-3 if mm.math == "tf32" else 0)


def expected(a: np.ndarray, b: np.ndarray, mm: devmath.Gemm, bias: np.ndarray | None = None) -> np.ndarray:
    """What `plain`, or with a bias `linear`, computes, in double precision."""
    c = product(a, b, mm)
    return c if bias is None else np.maximum(c + bias, 0)
