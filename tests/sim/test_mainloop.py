"""Whole matrix products in the simulator: numbers at every edge, and what the rules refuse."""

import re

import numpy as np
import pytest
from numba import cuda
from numba.core.errors import TypingError

import devmath
from tests import mainloop
from tests.oracle import gemm_error, normal, unset

MM = mainloop.SMALL[0]
each_descriptor = pytest.mark.parametrize("mm", mainloop.SMALL, ids=str)


@pytest.fixture
def rng():
    return np.random.default_rng()


@each_descriptor
def test_products_of_any_size(mm, rng):
    kernel = mainloop.plain(mm)
    for m, n, k in mainloop.shapes(mm):
        a, b = mainloop.matrices(rng, mm, m, n, max(k, 0))
        c = unset((m, n), mm.accumulator_dtype)
        kernel[mm.grid(m, n), mm.block_dim](*mm.operands(a, b, c))
        assert gemm_error(c, mainloop.expected(a, b, mm)) < mainloop.bound(mm, c.dtype), (m, n, k)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_an_epilog_sees_places_in_the_matrices(dtype, rng):
    m, n, k = 3 * MM.m - 1, 2 * MM.n + 3, 21
    a, b = mainloop.matrices(rng, MM, m, n, k)
    bias, c = normal(rng, (n,), np.float32), np.full((m, n), np.nan, dtype)
    mainloop.linear(MM)[MM.grid(m, n), MM.block_dim](*MM.operands(a, b, c), bias)
    assert gemm_error(c, mainloop.expected(a, b, MM, bias)) < mainloop.bound(MM, dtype)


@pytest.mark.parametrize("blocks", [1, 2, 5, 100])
def test_any_grid_covers_every_element_once_and_a_tile_may_be_left_out(blocks, rng):
    m, n, k = 5 * MM.m - 1, 3 * MM.n + 1, 9
    a, b = mainloop.matrices(rng, MM, m, n, k)
    c, visits = np.full((m, n), -1, np.float32), np.zeros((m, n), np.int32)
    mainloop.upper_triangle(MM)[blocks, MM.block_dim](*MM.operands(a, b, c), visits)
    rows, cols = np.ogrid[:m, :n]
    is_upper = rows // MM.m * MM.m < cols // MM.n * MM.n + MM.n
    assert (visits == 1).all()
    assert gemm_error(c, np.where(is_upper, mainloop.expected(a, b, MM), -1)) < 1e-5


def test_an_epilog_reduces_rows(rng):
    m, n, k = 2 * MM.m, 3 * MM.n, 21
    a, b = mainloop.matrices(rng, MM, m, n, k)
    c = unset((m, n), np.float32)
    mainloop.centred(MM)[MM.grid(m, n), MM.block_dim](*MM.operands(a, b, c))
    assert gemm_error(c, mainloop.centred_rows(mainloop.expected(a, b, MM), MM)) < 1e-5


def refused(pattern, body, error=TypingError):
    """Run `body(a, b, c)` in a kernel; it must fail."""
    a, b, c = (np.zeros(shape, np.float16) for shape in ((16, 8), (8, 32), (16, 32)))

    @cuda.jit
    def kernel(a, b, c):
        body(a, b, c)

    with pytest.raises(error, match=pattern):
        kernel[1, MM.block_dim](a, b, c)


def test_a_descriptor_without_a_mainloop():
    plain = devmath.Gemm(16, 32, 8, np.float16)
    refused(
        r"devmath\.tiles: its first argument must be a devmath\.Gemm with mainloop=True, got Gemm",
        lambda a, b, c: devmath.tiles(plain, a, b, c),
    )


def test_an_operand_of_another_dtype():
    refused(
        r"devmath\.tiles: b must be a 2-D array of float16, got a 2-D array of float32",
        lambda a, _, c: devmath.tiles(MM, a, cuda.shared.array((8, 32), np.float32), c),
    )


def test_a_tile_of_another_descriptor():
    def body(a, b, c):
        for t in devmath.tiles(MM, a, b, c):
            devmath.mainloop(mainloop.SMALL[3], t, devmath.accumulator(mainloop.SMALL[3]))

    refused(r"devmath\.mainloop: t must be a tile of devmath\.tiles\(Gemm\(.*\), got a tile of", body)


def test_a_tile_that_is_no_tile():
    refused(
        r"devmath\.mainloop: t must be a tile of devmath\.tiles\(Gemm\(.*, got int",
        lambda *_: devmath.mainloop(MM, 0, devmath.accumulator(MM)),
    )


def test_a_second_product_of_one_tile():
    def body(a, b, c):
        acc = devmath.accumulator(MM)
        for t in devmath.tiles(MM, a, b, c):
            devmath.mainloop(MM, t, acc)
            devmath.mainloop(MM, t, acc)

    refused("a tile must be multiplied once, got a second call", body, devmath.SimulationError)


def test_a_loop_that_is_left():
    def body(a, b, c):
        for _ in devmath.tiles(MM, a, b, c):
            break

    refused("the loop over devmath.tiles at .* must run to its end", body, devmath.SimulationError)


def test_a_second_loop():
    def body(a, b, c):
        for _ in range(2):
            for _ in devmath.tiles(MM, a, b, c):
                pass

    refused("devmath.tiles must be called once a kernel, got a second call", body)


A, B, C = (np.zeros(shape, np.float16) for shape in ((5, 8), (8, 7), (5, 7)))
OPERANDS_REFUSED = {
    "dtype": ((A.astype(np.float32), B, C), TypeError, "a must be an array of float16, got float32"),
    "depth": ((A, B[:4], C), ValueError, "b must have 8 rows, the columns of a, got shape (4, 7)"),
    "shape of c": ((A, B, C.T), ValueError, "c must have shape (5, 7), rows of a and columns of b, got (7, 5)"),
    "dimensions": ((A, B, C[0]), ValueError, "c must have two dimensions, got shape (7,)"),
    "order": ((A, B.T.copy().T, C), ValueError, "b must be row-ordered, its stride along columns 2 bytes, got strides"),
    "no array": ((A, B, 3), TypeError, "c must be an array, got int"),
    "dtype of c": ((A, B, C.astype(np.int64)), TypeError, "the dtype of c must be one of float16"),
}


@pytest.mark.parametrize("name", OPERANDS_REFUSED)
def test_operands_that_do_not_fit(name):
    arrays, error, message = OPERANDS_REFUSED[name]
    with pytest.raises(error, match=re.escape(message)):
        MM.operands(*arrays)


def test_host_calls_need_a_mainloop():
    plain = devmath.Gemm(16, 32, 8, np.float16)
    with pytest.raises(ValueError, match=r"mainloop=True, got Gemm\(16, 32, 8"):
        plain.operands(A, B, C)
    with pytest.raises(TypeError, match=r"grid takes \(count\) of Gemm\(16, 32, 8, .*, got \(5, 5\)"):
        plain.grid(5, 5)
    with pytest.raises(TypeError, match=r"grid takes \(m, n\) of Gemm\(16, 32, 8, .*, got \(5,\)"):
        MM.grid(5)
    with pytest.raises(ValueError, match="m must be >= 0, got -1"):
        MM.grid(-1, 5)
