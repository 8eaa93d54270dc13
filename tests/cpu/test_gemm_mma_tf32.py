"""Products of float32 on tensor cores in tf32: plans, and the header as plain C++ with emulated lanes."""

from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from gemm_cpu import (
    Case,
    Program,
    as_tf32,
    assert_about_as_exact_as_float32,
    assert_keeps,
    assert_poison_stays,
    of_one_sign,
    operands,
    relative_error,
    wide,
)
from holders import assert_held_once
from memory_banks import conflicts

from devmath.lto import gemm_mma_tf32
from devmath.lto.gemm_plan import max_accumulator_words, registers_of_thread
from tests.problems import problem

ORDERS = tuple(product(("row", "col"), repeat=3))
SIZES = ((1, 1, 1), (8, 8, 8), (50, 37, 19), (32, 32, 64), (96, 80, 40), (128, 128, 64), (200, 9, 3))
THREADS = (None, 32, 96, 256, 384, 1024)
TERMS = (1, 3)
MATH = {1: "tf32", 3: "3xtf32"}


def plan(m, n, k, orders=("row", "row", "row"), threads=None, terms=1):
    return gemm_mma_tf32.plan(problem(m, n, k, "float32", orders, threads, math=MATH[terms]))


@dataclass(frozen=True)
class Tf32Case(Case):
    """A case that this variant serves, whatever others would."""

    dtype: str = "float32"
    terms: int = 1

    @property
    def plan(self):
        return plan(self.m, self.n, self.k, self.orders, self.threads, self.terms)

    def __str__(self):
        return f"{super().__str__()}-{self.terms}"


def case(m, n, k, orders="rrr", threads=None, forms=("tile", "tile", "tile"), terms=1):
    return Tf32Case(m, n, k, orders=orders, threads=threads, forms=forms, terms=terms)


PLAIN = ("plain", "plain", "plain")
TILE_CASES = [
    *(case(50, 37, 19, "".join(orders), terms=terms) for *orders, terms in product("rc", "rc", "rc", TERMS)),
    *(case(20, 12, k, orders) for k, orders in product((1, 7, 8, 9, 16, 24, 25, 32), ("rcr", "crr"))),
    case(1, 1, 1, terms=3),
    case(64, 64, 32, "rcr", terms=3),
    case(64, 96, 12, "crc", 32, terms=3),  # several passes
    case(33, 20, 3, "crc", 96),
    case(17, 5, 9, threads=256),  # more threads than elements
    case(3, 4, 5, "rcr", 1024, terms=3),
    *(case(50, 37, 19, "rcr", forms=PLAIN, terms=terms) for terms in TERMS),
    case(27, 21, 5, "crr", forms=("plain", "tile", "plain")),
]
REGISTER_CASES = [
    case(31, 45, 7, "rrr", 96, ("tile", "tile"), terms=3),
    case(64, 64, 40, "rcr", None, ("tile", "tile")),
    case(64, 96, 5, "rcr", 32, ("tile", "tile"), terms=3),  # several passes
    case(24, 20, 33, "ccr", 64, ("plain", "tile")),
]
EDGE_CASES = [case(50, 24, 7, "rcr"), case(50, 24, 20, "crc", terms=3), case(50, 16, 9, forms=PLAIN, terms=3)]
LONG_CASES = [case(32, 24, k, "rcr", terms=3) for k in (8, 64, 500)]
NUMBER_CASES = [case(16, 8, 16, terms=terms) for terms in TERMS]
CASES = list(dict.fromkeys(TILE_CASES + REGISTER_CASES + EDGE_CASES + LONG_CASES + NUMBER_CASES))


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return Program(tmp_path_factory.mktemp("mma_tf32"), CASES)


def exact_product(case, a, b):
    """What infinitely precise sums give: of operands read as tf32, or of the operands themselves."""
    return wide(as_tf32(a)) @ wide(as_tf32(b)) if case.terms == 1 else wide(a) @ wide(b)


@pytest.mark.parametrize("case", TILE_CASES, ids=str)
def test_tile_form_agrees_with_numpy(program, case):
    """Past every extent memory is NaN, and the sanitizers watch the ends of each operand."""
    rng = np.random.default_rng()
    alpha, beta = rng.standard_normal(2).astype(np.float32)
    a, b, c, alpha, beta = of_one_sign(case, *operands(case, rng), alpha, beta)
    got = program.tile_form(case, alpha, a, b, beta, c)
    assert relative_error(got, float(alpha) * exact_product(case, a, b) + float(beta) * wide(c)) < 1e-6


@pytest.mark.parametrize("case", REGISTER_CASES, ids=str)
def test_register_form_adds_to_the_accumulator(program, case):
    a, b, c = operands(case, np.random.default_rng())
    assert relative_error(program.register_form(case, a, b, c), wide(c) + exact_product(case, a, b)) < 1e-6


@pytest.mark.parametrize("case", LONG_CASES, ids=str)
def test_three_terms_are_about_as_exact_as_float32(program, case):
    assert_about_as_exact_as_float32(program, case)


@pytest.mark.parametrize("case", LONG_CASES, ids=str)
def test_three_terms_keep_their_bound(program, case):
    """2^-21 of each product left out; each of six instructions cuts 2^-23 of 16 products, each addition rounds."""
    bound = 2.0**-21 + 6 * 2.0**-23 + (case.k / 16 + 2) * 2.0**-24
    assert_keeps(program, case, bound)


@pytest.mark.parametrize("poison", [np.nan, np.inf])
@pytest.mark.parametrize("case", EDGE_CASES, ids=str)
def test_what_is_not_finite_stays_in_its_row_and_column(program, case, poison):
    assert_poison_stays(program, case, poison)


@pytest.mark.parametrize("case", NUMBER_CASES, ids=str)
def test_infinities_and_nan_give_what_float32_gives(program, case):
    """Also times numbers that are exact in tf32, whose small part is zero."""
    a, b, c = operands(case, np.random.default_rng())
    a[1, 2], a[2, 3], a[3, 4], a[3, 5] = np.inf, -np.inf, np.inf, np.inf
    a[4, 6:7] = np.array([0x7FFFFFFF], np.uint32).view(np.float32)  # what a GPU computes where there is no number
    b[2:6] = 1.0
    b[4, 1], b[5, 2] = -1.0, 0.0
    with np.errstate(invalid="ignore"):
        expected = a @ b
    special = ~np.isfinite(expected)
    got = program.tile_form(case, 1.0, a, b, 0.0, c)
    assert np.array_equal(got[special], expected[special], equal_nan=True)
    assert np.isfinite(got[~special]).all()


@pytest.mark.parametrize("case", NUMBER_CASES, ids=str)
def test_the_largest_numbers_count_as_infinite_where_they_are_rounded(program, case):
    largest = np.finfo(np.float32).max
    a, b, c = np.zeros((16, 16), np.float32), np.eye(16, 8, dtype=np.float32), np.zeros((16, 8), np.float32)
    a[0, 0], a[1, 0] = -largest, largest * np.float32(1 - 2.0**-11)
    got = program.tile_form(case, 1.0, a, b, 0.0, c)
    assert got[0, 0] == (-np.inf if case.terms == 3 else as_tf32(-largest))
    assert abs(got[1, 0] / largest - 1) < 2.0**-10


@pytest.mark.parametrize("case", NUMBER_CASES, ids=str)
def test_subnormals_survive(program, case):
    a, b, c = (np.zeros(shape, np.float32) for shape in ((16, 16), (16, 8), (16, 8)))
    a[:], b[:] = 2.0**-130, 2.0**10
    assert (program.tile_form(case, 1.0, a, b, 0.0, c) == 16 * 2.0**-120).all()


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("size", SIZES)
def test_every_element_of_c_is_held_once(size, terms, threads):
    gemm = plan(*size, threads=threads, terms=terms)
    assert_held_once(gemm, *size[:2])
    assert threads in (None, gemm.threads)


@pytest.mark.parametrize("orders", ORDERS)
@pytest.mark.parametrize("size", SIZES)
def test_accesses_have_no_bank_conflicts(size, orders):
    """Rows of ldmatrix where k runs along the lines, else single floats; C in pairs along a row."""
    gemm = plan(*size, orders)
    lanes = np.arange(32)
    matrix_rows = np.arange(8)
    for tile, by_ldmatrix in ((gemm.a, orders[0] == "row"), (gemm.b, orders[1] == "col")):
        as_a = (lambda outer, k: (outer, k)) if tile is gemm.a else (lambda outer, k: (k, outer))
        where, access_bytes = (as_a(matrix_rows, 4), 16) if by_ldmatrix else (as_a(lanes // 4, lanes % 4), 4)
        assert conflicts(tile.offset(*where) * 4, access_bytes) == 0
    c_offsets = gemm.c.offset(lanes // 4, lanes % 4 * 2)
    assert conflicts(c_offsets * 4, 8 if orders[2] == "row" else 4) == 0


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("size", SIZES)
def test_one_pass_leaves_room_for_operands(size, terms, threads):
    gemm = plan(*size, threads=threads, terms=terms)
    row_blocks, col_blocks, _, k_step, _ = map(int, gemm.template.rstrip(">").split(",")[1:])
    accumulators = 4 * row_blocks * col_blocks
    assert accumulators <= max_accumulator_words(gemm.threads, words_each=1)
    assert accumulators + terms * (2 * row_blocks + col_blocks) * k_step // 4 < registers_of_thread(gemm.threads)


@pytest.mark.parametrize(("m", "n", "threads"), [(8, 8, 32), (64, 64, 128), (128, 128, 256)])
@pytest.mark.parametrize("terms", TERMS)
def test_default_threads(m, n, threads, terms):
    gemm = plan(m, n, 32, terms=terms)
    assert gemm.threads == threads
    assert gemm.register_form_problem is None
