"""Products on tensor cores in float64: plans, and the header as plain C++ with emulated lanes."""

from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from gemm_cpu import Case, Program, assert_poison_stays, of_one_sign, operands, relative_error
from holders import assert_held_once
from memory_banks import conflicts

from devmath.lto import gemm_mma_f64
from devmath.lto.gemm_plan import max_accumulator_words, registers_of_thread
from tests.problems import problem

ORDERS = tuple(product(("row", "col"), repeat=3))
SIZES = ((1, 1, 1), (8, 8, 8), (50, 37, 19), (32, 32, 64), (96, 80, 40), (128, 128, 64), (200, 9, 3))
THREADS = (None, 32, 96, 256, 384, 1024)


def plan(m, n, k, orders=("row", "row", "row"), threads=None):
    return gemm_mma_f64.plan(problem(m, n, k, "float64", orders, threads))


@dataclass(frozen=True)
class F64Case(Case):
    """A case that this variant serves, whatever others would."""

    dtype: str = "float64"

    @property
    def plan(self):
        return plan(self.m, self.n, self.k, self.orders, self.threads)


def case(m, n, k, orders="rrr", threads=None, forms=("tile", "tile", "tile")):
    return F64Case(m, n, k, orders=orders, threads=threads, forms=forms)


TILE_CASES = [
    *(case(50, 37, 19, "".join(orders)) for orders in product("rc", repeat=3)),
    *(case(20, 12, k, orders) for k, orders in product((1, 7, 8, 9, 16, 25, 32), ("rcr", "crr"))),
    case(1, 1, 1),
    case(16, 8, 16),
    case(64, 64, 32),
    case(64, 96, 12, "crc", 32),  # several passes
    case(33, 20, 3, "crc", 96),
    case(17, 5, 9, threads=256),  # more threads than elements
    case(3, 4, 5, "rcr", 1024),
    case(50, 37, 19, "rcr", forms=("plain", "plain", "plain")),
    case(27, 21, 5, "crr", forms=("plain", "tile", "plain")),
]
REGISTER_CASES = [
    case(31, 45, 7, "rrr", 96, ("tile", "tile")),
    case(64, 64, 40, "crr", None, ("tile", "tile")),
    case(64, 64, 5, "rcr", 32, ("tile", "tile")),  # two passes
    case(24, 20, 33, "ccr", 64, ("plain", "tile")),
]
EDGE_CASES = [case(50, 24, 7, "rcr"), case(50, 24, 20, "crc"), case(50, 16, 9, forms=("plain", "plain", "plain"))]
CASES = list(dict.fromkeys(TILE_CASES + REGISTER_CASES + EDGE_CASES))


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return Program(tmp_path_factory.mktemp("mma_f64"), CASES)


@pytest.mark.parametrize("case", TILE_CASES, ids=str)
def test_tile_form_agrees_with_numpy(program, case):
    """Past every extent memory is NaN, and the sanitizers watch the ends of each operand."""
    rng = np.random.default_rng()
    alpha, beta = rng.standard_normal(2)
    a, b, c, alpha, beta = of_one_sign(case, *operands(case, rng), alpha, beta)
    assert relative_error(program.tile_form(case, alpha, a, b, beta, c), alpha * (a @ b) + beta * c) < 1e-13


@pytest.mark.parametrize("case", REGISTER_CASES, ids=str)
def test_register_form_adds_to_the_accumulator(program, case):
    a, b, c = operands(case, np.random.default_rng())
    assert relative_error(program.register_form(case, a, b, c), c + a @ b) < 1e-13


@pytest.mark.parametrize("poison", [np.nan, np.inf])
@pytest.mark.parametrize("case", EDGE_CASES, ids=str)
def test_what_is_not_finite_stays_in_its_row_and_column(program, case, poison):
    assert_poison_stays(program, case, poison)


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("size", SIZES)
def test_every_element_of_c_is_held_once(size, threads):
    gemm = plan(*size, threads=threads)
    assert_held_once(gemm, *size[:2])
    assert threads in (None, gemm.threads)


@pytest.mark.parametrize("orders", ORDERS)
@pytest.mark.parametrize("size", SIZES)
def test_accesses_have_no_bank_conflicts(size, orders):
    """A pair where k runs along the lines, or C along a row; else single elements, two lines from lane to lane."""
    gemm = plan(*size, orders)
    lanes = np.arange(32)
    outer, inner = lanes // 4, lanes % 4 * 2
    for tile, offsets, in_pairs in (
        (gemm.a, gemm.a.offset(outer, inner), orders[0] == "row"),
        (gemm.b, gemm.b.offset(inner, outer), orders[1] == "col"),
        (gemm.c, gemm.c.offset(outer, inner), orders[2] == "row"),
    ):
        assert conflicts(offsets * tile.dtype.itemsize, 16 if in_pairs else 8) == 0


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("size", SIZES)
def test_one_pass_leaves_room_for_operands(size, threads):
    gemm = plan(*size, threads=threads)
    row_blocks, col_blocks, k_step, _ = map(int, gemm.template.rstrip(">").split(",")[1:])
    accumulators = 8 * row_blocks * col_blocks
    assert accumulators <= max_accumulator_words(gemm.threads, words_each=2)
    assert accumulators + (2 * row_blocks + col_blocks) * k_step // 2 < registers_of_thread(gemm.threads)


@pytest.mark.parametrize(
    ("size", "served"), [((64, 64, 32), True), ((16, 8, 8), True), ((8, 8, 8), True), ((1, 64, 64), False)]
)
def test_shapes_that_waste_most_of_an_instruction_are_left_to_fma_units(size, served):
    assert (gemm_mma_f64.drawback(problem(*size, "float64")) is None) is served


@pytest.mark.parametrize(("m", "n", "threads"), [(8, 8, 32), (64, 64, 128), (128, 64, 128), (128, 128, 256)])
def test_default_threads(m, n, threads):
    gemm = plan(m, n, 32)
    assert gemm.threads == threads
    assert gemm.register_form_problem is None
