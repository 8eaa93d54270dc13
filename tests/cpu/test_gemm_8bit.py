"""Products of 8-bit numbers: plans, and the header as plain C++ with emulated lanes, by either instruction."""

from itertools import product

import numpy as np
import pytest
from gemm_cpu import Case, Program, operands, random, relative_error, wide
from holders import assert_held_once
from memory_banks import conflicts

from devmath.dtypes import BY_NAME
from devmath.lto import gemm_mma_sync
from devmath.lto.gemm_plan import max_accumulator_words
from tests.problems import problem

FLOAT8, INTEGER = ("float8_e4m3fn", "float8_e5m2"), ("int8", "uint8")
MIXES = [*product(FLOAT8, FLOAT8), *product(INTEGER, INTEGER)]
ORDERS = tuple(map("".join, product("rc", repeat=3)))
SIZES = ((1, 1, 1), (8, 8, 8), (50, 37, 19), (64, 64, 64), (96, 80, 160), (128, 128, 128), (200, 9, 3))
PLAIN, TILES = ("plain", "plain", "plain"), ("tile", "tile")

# Relative L2 error: of float sums, or of one rounding.
BOUNDS = {"float32": 1e-6, "float16": 2**-11, "bfloat16": 2**-8, "float8_e4m3fn": 2**-4, "float8_e5m2": 2**-3}

TILE_CASES = [
    *(Case(50, 24, k, a, b_dtype=b) for (a, b), k in product(MIXES, (1, 19, 33))),
    *(Case(33, 47, 19, "int8", orders) for orders in ORDERS),
    Case(1, 1, 1, "float8_e4m3fn"),
    Case(17, 5, 64, "float8_e5m2", threads=256),  # more threads than elements
    Case(64, 64, 128, "int8", "rcc", 32),  # several passes
    Case(40, 24, 100, "float8_e4m3fn", "crr", c_dtype="float16"),
    Case(40, 24, 32, "float8_e5m2", "rrr", c_dtype="bfloat16"),
    Case(24, 36, 48, "float8_e4m3fn", "rrr", c_dtype="float8_e4m3fn", b_dtype="float8_e5m2"),
    Case(24, 36, 48, "float8_e4m3fn", "rrc", c_dtype="float8_e5m2", b_dtype="float8_e5m2"),
    Case(40, 24, 37, "float8_e4m3fn", "crr", 64, forms=PLAIN),
    *(Case(21, 24, 37, "uint8", orders, 64, forms=PLAIN, b_dtype="int8") for orders in ("rrr", "crc", "rcr")),
    Case(20, 24, 16, "int8", "rrc", 32, forms=("tile", "plain", "tile")),
    Case(20, 24, 16, "int8", "ccr", 32, forms=("plain", "tile", "plain")),
]
REGISTER_CASES = [
    Case(50, 37, 19, "int8", "crr", forms=TILES, b_dtype="uint8"),
    Case(72, 80, 40, "float8_e5m2", "rcr", 64, forms=TILES),
    Case(64, 96, 96, "float8_e4m3fn", "crr", 32, forms=TILES),  # several passes
    Case(24, 20, 33, "uint8", "ccr", 64, forms=("plain", "tile")),
]
EDGE_CASES = [
    *(Case(50, 24, k, a, b_dtype=b) for (a, b), k in product(product(FLOAT8, FLOAT8), (33, 64))),
    Case(50, 24, 33, "float8_e5m2", forms=PLAIN),
]
EXACT_CASES = [Case(16, 8, 256, dtype) for dtype in FLOAT8]
WRAP_CASES = [Case(20, 12, 40, "uint8"), Case(20, 12, 40, "int8", forms=TILES)]
CASES = list(dict.fromkeys(TILE_CASES + REGISTER_CASES + EDGE_CASES + EXACT_CASES + WRAP_CASES))


@pytest.fixture(scope="module", params=["float8", "halves"])
def program(request, tmp_path_factory):
    """Tensor cores that multiply float8, and older ones that multiply halves in its place."""
    flags = {"float8": (), "halves": ("-DDEVMATH_HAS_FLOAT8_MMA=0",)}[request.param]
    return Program(tmp_path_factory.mktemp(request.param), CASES, flags)


def is_float8(case):
    return case.dtype in FLOAT8


def assert_is(case, got, want):
    """Integers to the last bit, modulo 2^32; floating point within the bound of its type."""
    if is_float8(case):
        assert relative_error(got, want) < BOUNDS[got.dtype.name]
    else:
        assert np.array_equal(got, want.astype(np.int32))


def whole(array):
    """The same numbers, so wide that sums and products of them are right."""
    return wide(array) if array.dtype.kind not in "iu" else array.astype(np.int64)


@pytest.mark.parametrize("case", TILE_CASES, ids=str)
def test_tile_form_agrees_with_numpy(program, case):
    """Around the operands memory is 0xFF, which is NaN in float8, and the sanitizers watch the ends of each."""
    rng = np.random.default_rng()
    a, b, c = operands(case, rng)
    alpha, beta = (3, -2) if not is_float8(case) else rng.standard_normal(2).astype(np.float32)
    got = program.tile_form(case, alpha, a, b, beta, c)
    assert_is(case, got, alpha * (whole(a) @ whole(b)) + beta * whole(c))


@pytest.mark.parametrize("case", REGISTER_CASES, ids=str)
def test_register_form_adds_to_the_accumulator(program, case):
    a, b, c = operands(case, np.random.default_rng())
    assert_is(case, program.register_form(case, a, b, c), whole(c) + whole(a) @ whole(b))


@pytest.mark.parametrize("case", EXACT_CASES, ids=str)
def test_every_number_is_multiplied_exactly(program, case):
    """All 256 float8 numbers that are finite, by powers of two, one product a sum."""
    every = np.arange(256, dtype=np.uint8).view(BY_NAME[case.dtype].numpy)
    every = np.where(np.isfinite(every.astype(np.float32)), every, every.dtype.type(0))
    a = np.zeros((16, 256), every.dtype)
    b = np.zeros((256, 8), every.dtype)
    for row in range(16):
        a[row, 16 * row : 16 * (row + 1)] = every[16 * row : 16 * (row + 1)]
    for col in range(8):
        b[col::16, col] = 2.0 ** (col - 4)
    got = program.tile_form(case, 1.0, a, b, 0.0, np.zeros((16, 8), np.float32))
    assert np.array_equal(got, wide(a) @ wide(b))
    assert np.count_nonzero(got) > 100


@pytest.mark.parametrize("poison", [np.nan, np.inf])
@pytest.mark.parametrize("case", EDGE_CASES, ids=str)
def test_what_is_not_finite_stays_in_its_row_and_column(program, case, poison):
    """float8_e4m3fn has no infinity: there it becomes NaN, as ml_dtypes has it."""
    a, b, c = operands(case, np.random.default_rng())
    a[3, :] = poison
    b[:, 5] = poison
    got = program.tile_form(case, 1.0, a, b, 1.0, c)
    expected = np.ones(got.shape, bool)
    expected[3, :] = expected[:, 5] = False
    assert np.array_equal(np.isfinite(got), expected)


@pytest.mark.parametrize("case", EDGE_CASES[:-1], ids=str)
def test_infinities_and_nan_give_what_float32_gives(program, case):
    rng = np.random.default_rng()
    a, b = random(rng, case.dtype, case.m, case.k), random(rng, case.b_dtype, case.k, case.n)
    a[1, 2], a[2, 3], a[3, 4], a[3, 5], a[4, 6] = np.inf, -np.inf, np.inf, np.inf, np.nan
    b[2:7] = 1.0
    b[4, 1], b[5, 2] = -1.0, 0.0
    with np.errstate(invalid="ignore"):
        expected = a.astype(np.float32) @ b.astype(np.float32)
    special = ~np.isfinite(expected)
    got = program.tile_form(case, 1.0, a, b, 0.0, np.zeros((case.m, case.n), np.float32))
    assert np.array_equal(got[special], expected[special], equal_nan=True)
    assert np.isfinite(got[~special]).all()


@pytest.mark.parametrize("case", [case for case in EDGE_CASES if case.forms != PLAIN], ids=str)
def test_beta_zero_never_reads_c(program, case):
    a, b, c = operands(case, np.random.default_rng())
    c[:] = np.nan
    assert_is(case, program.tile_form(case, 1.5, a, b, 0.0, c), 1.5 * (wide(a) @ wide(b)))


@pytest.mark.parametrize("case", WRAP_CASES, ids=str)
def test_integers_wrap_around(program, case):
    a, b, c = operands(case, np.random.default_rng())
    a[:], b[:], c[:, ::2] = np.iinfo(a.dtype).max, np.iinfo(b.dtype).max, 2**31 - 1
    if case.is_register_form:
        got, want = program.register_form(case, a, b, c), whole(c) + whole(a) @ whole(b)
    else:
        factor = 2**20 + 1
        got = program.tile_form(case, factor, a, b, -7, c)
        want = factor * (whole(a) @ whole(b)) - 7 * whole(c)
    assert (abs(want) > 2**31).any()
    assert np.array_equal(got, want.astype(np.int32))


def plan(m, n, k, dtype="int8", orders="rrr", threads=None):
    return gemm_mma_sync.plan(problem(m, n, k, dtype, orders, threads))


@pytest.mark.parametrize("threads", [None, 32, 96, 256, 384, 1024])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", ["int8", "float8_e5m2"])
def test_every_element_of_c_is_held_once(dtype, size, threads):
    gemm = plan(*size, dtype, threads=threads)
    assert_held_once(gemm, *size[:2])
    assert threads in (None, gemm.threads)
    row_blocks, col_blocks = map(int, gemm.template.split(",")[1:3])
    assert 4 * row_blocks * col_blocks <= max_accumulator_words(gemm.threads, words_each=1)


@pytest.mark.parametrize("orders", ORDERS)
def test_tiles_lie_with_k_along_their_lines(orders):
    gemm = plan(50, 37, 19, orders=orders)
    assert (gemm.a.order, gemm.b.order) == ("row", "col")
    assert "".join(gemm.plain(name).order[0] for name in "abc") == orders
    assert gemm.c.order == gemm.plain("c").order
    for tile in (gemm.a, gemm.b):
        assert tile.ld % 16 == 0
        assert tile.ld >= 32  # an instruction reads 32 values of k


@pytest.mark.parametrize("size", SIZES)
def test_rows_of_a_matrix_are_in_different_banks(size):
    gemm = plan(*size)
    assert conflicts(gemm.a.offset(np.arange(8), 0), 16) == 0
    assert conflicts(gemm.b.offset(0, np.arange(8)), 16) == 0
