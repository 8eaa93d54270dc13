"""Three products of tf32 by wgmma: numbers of the header as plain C++, and what the planner sets aside."""

import numpy as np
import pytest
from gemm_cpu import (
    Program,
    assert_about_as_exact_as_float32,
    assert_keeps,
    assert_poison_stays,
    operands,
    relative_error,
    wide,
)
from test_gemm_wgmma import WgmmaCase

from devmath.lto.gemm_plan import MIN_OTHER_REGISTERS, registers_of_thread

TILES = ("tile", "tile")


def case(m, n, k, orders="rcr", threads=128, forms=("tile", "tile", "tile")):
    return WgmmaCase(m, n, k, "float32", orders, threads, forms=forms, math="3xtf32")


TILE_CASES = [
    *(case(64, 64, 32, orders) for orders in ("rcr", "rrr", "ccc", "crr")),
    case(128, 128, 32, threads=256),
    case(100, 72, 40),  # three panels of k, rows read past the tile, two passes
    case(64, 50, 8, "ccc"),
    case(64, 300, 16),  # several passes along n
    case(192, 40, 72, threads=384),  # 9 steps of k: two whole chunks, one of a single step
    case(64, 24, 24, "rrc", forms=("tile", "plain", "plain")),
]
REGISTER_CASES = [
    case(128, 104, 64, "crr", 256, TILES),
    case(128, 256, 16, "rcr", 256, TILES),
    case(64, 40, 24, "crr", 128, ("plain", "plain")),
]
EDGE_CASES = [case(100, 24, 40), case(64, 64, 64, "crr", 256)]
LONG_CASES = [case(64, 24, k) for k in (8, 64, 512)]
NUMBER_CASE = case(64, 16, 16)
CASES = list(dict.fromkeys([*TILE_CASES, *REGISTER_CASES, *EDGE_CASES, *LONG_CASES, NUMBER_CASE]))


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return Program(tmp_path_factory.mktemp("wgmma_tf32x3"), CASES)


@pytest.mark.parametrize("case", TILE_CASES, ids=str)
def test_tile_form_agrees_with_numpy(program, case):
    """Past every extent memory is NaN, and the sanitizers watch the ends of each operand."""
    a, b, c = operands(case, np.random.default_rng())
    got = program.tile_form(case, 1.5, a, b, -0.75, c)
    assert relative_error(got, 1.5 * (wide(a) @ wide(b)) - 0.75 * wide(c)) < 1e-6


@pytest.mark.parametrize("case", REGISTER_CASES, ids=str)
def test_register_form_adds_to_the_accumulator(program, case):
    a, b, c = operands(case, np.random.default_rng())
    assert relative_error(program.register_form(case, a, b, c), wide(c) + wide(a) @ wide(b)) < 1e-6


@pytest.mark.parametrize("case", LONG_CASES, ids=str)
def test_it_is_about_as_exact_as_float32(program, case):
    assert_about_as_exact_as_float32(program, case)


@pytest.mark.parametrize("case", LONG_CASES, ids=str)
def test_it_keeps_its_bound(program, case):
    """2^-19 of each product left out; each of 12 instructions cuts 2^-23 of 32 products, each addition rounds."""
    bound = 2.0**-19 + 12 * 2.0**-23 + (case.k / 32 + 2) * 2.0**-24
    assert_keeps(program, case, bound)


@pytest.mark.parametrize("poison", [np.nan, np.inf])
@pytest.mark.parametrize("case", EDGE_CASES, ids=str)
def test_what_is_not_finite_stays_in_its_row_and_column(program, case, poison):
    assert_poison_stays(program, case, poison)


def test_infinities_and_nan_give_what_float32_gives(program):
    """Also times numbers that are exact in tf32, whose small part is zero."""
    a, b, c = operands(NUMBER_CASE, np.random.default_rng())
    a[1, 2], a[2, 3], a[3, 4], a[3, 5] = np.inf, -np.inf, np.inf, np.inf
    a[4, 6:7] = np.array([0x7FFFFFFF], np.uint32).view(np.float32)  # what a GPU computes where there is no number
    b[2:6] = 1.0
    b[4, 1], b[5, 2], b[9, 3] = -1.0, 0.0, np.inf
    with np.errstate(invalid="ignore"):
        expected = a @ b
    special = ~np.isfinite(expected)
    got = program.tile_form(NUMBER_CASE, 1.0, a, b, 0.0, c)
    assert np.array_equal(got[special], expected[special], equal_nan=True)
    assert np.isfinite(got[~special]).all()


def test_large_numbers_and_subnormal_ones_survive(program):
    largest = np.finfo(np.float32).max * np.float32(1 - 2.0**-20)
    a, b, c = (np.zeros(shape, np.float32) for shape in ((64, 16), (16, 16), (64, 16)))
    a[:, 0], a[:, 1], b[0, :8], b[1, 8:] = -largest, 2.0**-130, 1.0, 2.0**10
    got = program.tile_form(NUMBER_CASE, 1.0, a, b, 0.0, c)
    assert np.abs(got[:, :8] / -largest - 1).max() < 2.0**-20
    assert (got[:, 8:] == 2.0**-120).all()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_small_part_of_b_has_room_and_a_pass_has_registers(case):
    plan = case.plan
    assert (plan.a.copies, plan.b.copies) == (1, 2)
    assert not plan.b.can_serve_as(plan.a)
    width, threads = map(int, plan.template.rstrip(">").split(",")[1:])
    assert width >= min(case.n, 32)
    held = plan.fragment.size if plan.register_form_problem is None else width // 2
    assert held + width // 2 + 32 + MIN_OTHER_REGISTERS <= registers_of_thread(threads)
