"""The wgmma variant: what its planner decides, and its header as plain C++ with the instruction emulated."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from gemm_cpu import Case, Program, as_tf32, operands, relative_error, wide
from holders import holders

from devmath.lto import gemm_wgmma, gemm_wgmma_tf32
from devmath.lto.gemm_plan import max_accumulator_words
from tests import problems

PLAIN, TILES = ("plain", "plain"), ("tile", "tile")
BOUNDS = {"float32": 1e-5, "float16": 2**-11, "bfloat16": 2**-8, "float8_e5m2": 2**-3}  # of sums; of one rounding


MODULES = {"ieee": gemm_wgmma, "tf32": gemm_wgmma_tf32, "3xtf32": gemm_wgmma_tf32}


def problem(m, n, k, orders="rcr", threads=128, dtype="float16", c_dtype="float32", math="ieee"):
    return problems.problem(m, n, k, dtype, orders, threads, c_dtype, math)


def tf32(m, n, k, orders="rcr", threads=128, math="tf32"):
    return problem(m, n, k, orders, threads, "float32", math=math)


def int8(m, n, k, orders="rcr", threads=128):
    return problem(m, n, k, orders, threads, "int8", "int32")


def float8(m, n, k, orders="rcr", threads=128):
    return problem(m, n, k, orders, threads, "float8_e4m3fn")


def three_terms(*arguments):
    return tf32(*arguments, math="3xtf32")


def plan_of(wanted):
    return MODULES[wanted.math].plan(wanted)


def serves(wanted):
    return MODULES[wanted.math].obstacle(wanted) is None and MODULES[wanted.math].drawback(wanted) is None


class WgmmaCase(Case):
    """A case of this variant, whose unit includes the emulation."""

    @property
    def plan(self):
        return replace(plan_of(self.problem), header="wgmma_block.hpp")


class RegistersCase(WgmmaCase):
    """The same by the instruction that takes A from registers."""

    @property
    def plan(self):
        plan = super().plan
        return replace(plan, template=f"WgmmaRegistersBlock<Fragment, {width_of(plan)}>")


def width_of(plan):
    """Columns of the instruction."""
    return int(plan.template.rstrip(">").split(",")[1])


def tf32_case(m, n, k, orders="rcr", threads=128, forms=("tile", "tile", "tile"), math="tf32"):
    return WgmmaCase(m, n, k, "float32", orders, threads, forms=forms, math=math)


#: Type of A, orders, threads, type of C, forms, math, conjugates, type of B.
BYTES = [
    (a, "rrr", 128, None, ("tile",) * 3, "ieee", (False, False), b)
    for types in (("int8", "uint8"), ("float8_e4m3fn", "float8_e5m2"))
    for a, b in product(types, types)
]
TILE_CASES = [
    WgmmaCase(64, 64, 64, "float16", "rcr", 128),
    WgmmaCase(64, 64, 64, "bfloat16", "crc", 128),
    WgmmaCase(64, 16, 16, "float16", "rrr", 128),
    WgmmaCase(128, 128, 32, "bfloat16", "rcr", 256),
    WgmmaCase(64, 256, 16, "float16", "crr", 256),
    WgmmaCase(64, 104, 32, "float16", "rrr", 128),
    WgmmaCase(100, 72, 48, "bfloat16", "crr", 128),
    WgmmaCase(72, 24, 80, "float16", "crr", 128),  # three panels of k, rows read past the tile
    WgmmaCase(96, 50, 192, "float16", "rcc", 128),  # three panels of k, 128 bytes wide
    WgmmaCase(192, 192, 16, "bfloat16", "crc", 384),  # three panels of m and of n
    WgmmaCase(64, 300, 16, "float16", "rrr", 128),  # several passes along n, in panels
    WgmmaCase(64, 300, 16, "float16", "rcr", 128),
    WgmmaCase(200, 40, 32, "float16", "rrr", 128),  # several passes along m
    WgmmaCase(64, 72, 16, "float16", "rcr", 256),  # 40 columns a warpgroup: a line of B past the end of its last atom
    WgmmaCase(64, 20, 16, "float16", "rcr", 512),  # most warpgroups start past the edge
    WgmmaCase(100, 64, 32, "float16", "rcr", 128, "float16"),
    WgmmaCase(128, 100, 32, "bfloat16", "ccc", 128, "bfloat16"),
    WgmmaCase(100, 40, 20 * 16, "float16", "ccr", 128, forms=("tile", "plain", "tile")),
    *(tf32_case(64, 64, 32, orders) for orders in ("rcr", "rrr", "ccc", "crr")),
    tf32_case(128, 128, 32, "crr", 256),
    tf32_case(100, 72, 40),  # three panels of k, rows read past the tile, two passes
    tf32_case(64, 50, 8, "ccc"),
    tf32_case(64, 300, 16, "crr"),  # several passes along n
    tf32_case(100, 40, 24, "crr", forms=("plain", "tile", "tile")),
    tf32_case(64, 24, 16, "rrc", forms=("tile", "plain", "plain")),
    *(WgmmaCase(64, 64, 64, *mix) for mix in BYTES),
    WgmmaCase(128, 104, 128, "int8", "crr", 256),  # two passes along n, of 64 columns
    WgmmaCase(100, 24, 96, "uint8", "ccc", 128, b_dtype="int8"),  # three panels of k
    WgmmaCase(64, 300, 32, "float8_e4m3fn", "crr", 128, b_dtype="float8_e5m2"),
    WgmmaCase(100, 72, 160, "float8_e5m2", "rrr", 128, "float8_e5m2"),
    WgmmaCase(64, 40, 64, "float8_e4m3fn", "crc", 128, "float16", forms=("plain", "tile", "tile")),
    RegistersCase(64, 64, 64, "float16", "rcr", 128),
    RegistersCase(100, 72, 48, "bfloat16", "rrr", 128),
    RegistersCase(128, 40, 32, "float16", "crr", 256),
    RegistersCase(128, 64, 96, "int8", "rcr", 256),
    RegistersCase(64, 24, 64, "float8_e5m2", "rcr", 128),
]
REGISTER_CASES = [
    *(WgmmaCase(64, n, 16, "float16", orders, 128, forms=TILES) for n in (16, 88, 256) for orders in ("rcr", "crr")),
    WgmmaCase(128, 256, 64, "bfloat16", "rcr", 256, forms=TILES),
    WgmmaCase(100, 104, 80, "float16", "ccr", 128, forms=TILES),
    WgmmaCase(192, 40, 128, "bfloat16", "rrr", 128, forms=TILES),
    WgmmaCase(64, 24, 48, "float16", "rrr", 128, forms=("plain", "tile")),
    WgmmaCase(100, 128, 32, "bfloat16", "crr", 256, forms=PLAIN),
    tf32_case(128, 104, 64, "crr", 256, TILES),
    tf32_case(64, 40, 24, "crr", 128, PLAIN),
    WgmmaCase(128, 256, 32, "int8", "rrr", 256, forms=TILES, b_dtype="uint8"),
    WgmmaCase(100, 40, 64, "float8_e5m2", "crr", 128, forms=TILES),
    WgmmaCase(64, 40, 33 * 32, "uint8", "crr", 128, forms=PLAIN),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return Program(tmp_path_factory.mktemp("wgmma"), TILE_CASES + REGISTER_CASES)


def whole(array):
    """The same numbers, so wide that sums and products of them are right."""
    return array.astype(np.int64) if array.dtype.kind in "iu" else wide(array)


def product_of(case, a, b):
    """A B, of what is multiplied."""
    return wide(as_tf32(a)) @ wide(as_tf32(b)) if case.math == "tf32" else whole(a) @ whole(b)


def assert_is(got, want):
    """Integers to the last bit, modulo 2^32; floating point within the bound of its type."""
    if got.dtype == np.int32:
        assert np.array_equal(got, want.astype(np.int32))
    else:
        assert relative_error(got, want) < BOUNDS[got.dtype.name]


@pytest.mark.parametrize("case", TILE_CASES, ids=str)
def test_tile_form_agrees_with_numpy(program, case):
    """Past every extent memory is NaN, and the sanitizers watch the ends of each operand."""
    a, b, c = operands(case, np.random.default_rng())
    alpha, beta = (3, -2) if case.plan.accumulator.is_integer else (1.5, -0.75)
    assert_is(program.tile_form(case, alpha, a, b, beta, c), alpha * product_of(case, a, b) + beta * whole(c))


@pytest.mark.parametrize("case", REGISTER_CASES, ids=str)
def test_register_form_adds_to_the_accumulator(program, case):
    a, b, c = operands(case, np.random.default_rng())
    assert_is(program.register_form(case, a, b, c), whole(c) + product_of(case, a, b))


SIZES = list(product((64, 72, 100, 128, 192, 300), (16, 24, 40, 64, 104, 130, 200, 256, 320), (16, 48, 64, 80, 128)))
SERVED = [
    wanted
    for make in (problem, tf32, three_terms, int8, float8)
    for size in SIZES
    for orders in ("rrr", "rcr", "crc", "ccr")
    for threads in (128, 256, 384, 512)
    if serves(wanted := make(*size, orders, threads))
]


def test_what_it_serves_wastes_little():
    for arguments in SERVED:
        m, n, threads = arguments.m, arguments.n, arguments.threads
        fragment = plan_of(arguments).fragment
        most = max_accumulator_words(threads, words_each=1)
        assert fragment.size <= most or m * n > most * threads
        assert m * n >= 0.62 * fragment.size * threads


def test_every_element_of_c_is_held_once():
    for arguments in SERVED[::5]:
        plan = plan_of(arguments)
        assert (holders(plan) == 1).all()


def test_tiles_are_panels_of_one_swizzle():
    """An atom is 8 lines of 32, 64 or 128 bytes; of elements that have not 16 bits k runs along them."""
    for arguments in SERVED:
        plan = plan_of(arguments)
        for tile, order, along_k in zip((plan.a, plan.b), arguments.orders, ("row", "col"), strict=False):
            line_bytes = tile.ld * tile.dtype.itemsize
            assert tile.order == (order if tile.dtype.itemsize == 2 else along_k)
            assert line_bytes == 16 * tile.swizzle
            assert tile.lines_allocated % 8 == 0
            assert tile.alignment_bytes == 8 * line_bytes


def test_columns_along_the_lines_of_b_start_and_end_with_panels():
    tried = 0
    for arguments in SERVED:
        plan = plan_of(arguments)
        width = width_of(plan)
        if plan.b.order == "row" and width < plan.problem.n:
            tried += 1
            assert width % plan.b.ld == 0
            assert -(-plan.problem.n // width) * width <= plan.b.panels * plan.b.ld
    assert tried > 0


@pytest.mark.parametrize(
    ("size", "orders", "threads", "width", "words"),
    [
        ((64, 64, 64), "rcr", 128, 64, 32),
        ((128, 128, 64), "rcr", 256, 128, 64),  # rows first
        ((128, 256, 64), "crr", 256, 256, 128),
        ((64, 256, 64), "rrr", 256, 128, 64),  # one warpgroup of rows: columns
        ((64, 104, 32), "rrr", 128, 104, 52),
        ((100, 72, 48), "rcr", 128, 72, 72),  # two passes along m
    ],
)
def test_tilings(size, orders, threads, width, words):
    plan = gemm_wgmma.plan(problem(*size, orders, threads))
    assert (plan.template, plan.fragment.size) == (f"WgmmaBlock<Fragment, {width}, 2>", words)


def test_it_serves_tiles_too_large_for_registers():
    """The tile form takes them in passes."""
    assert serves(problem(128, 256, 64, threads=128))
    assert gemm_wgmma.plan(problem(128, 256, 64, threads=128)).register_form_problem is not None


@pytest.mark.parametrize(
    ("line", "ld", "panels"),
    [(16, 16, 1), (32, 32, 1), (48, 64, 1), (64, 64, 1), (80, 32, 3), (96, 32, 3), (128, 64, 2), (192, 64, 3)],
)
def test_panels_of_k(line, ld, panels):
    tile = gemm_wgmma.plan(problem(64, 64, line)).a
    assert (tile.ld, tile.panels) == (ld, panels)


@pytest.mark.parametrize(
    ("size", "threads"),
    [
        ((63, 64, 64), 128),
        ((64, 15, 64), 128),
        ((64, 64, 20), 128),
        ((64, 64, 64), 96),
        ((64, 64, 64), 1024),
        ((70, 200, 16), 128),  # 200 accumulators, of which mma.sync needs 125
        ((65, 64, 16), 128),  # half of the rows
    ],
)
def test_it_leaves_the_rest_to_mma_sync(size, threads):
    assert not serves(problem(*size, threads=threads))


def test_integers_have_fewer_widths():
    plans = [plan_of(wanted) for wanted in SERVED if wanted.a.is_integer]
    assert {width_of(plan) for plan in plans} > {16, 24, 48, 112, 208}
    assert all(width_of(plan) <= 32 or width_of(plan) % 16 == 0 for plan in plans)


@pytest.mark.parametrize("make", [int8, float8])
def test_bytes_are_taken_32_at_a_time(make):
    assert serves(make(64, 64, 96))
    assert not serves(make(64, 64, 48))


@pytest.mark.parametrize(("k", "served"), [(8, True), (24, True), (32, True), (20, False), (4, False)])
def test_tf32_takes_eight_values_of_k_at_a_time(k, served):
    assert serves(tf32(64, 64, k)) == served


@pytest.mark.parametrize("orders", ["rrr", "crr", "rcc", "ccc"])
def test_a_16_bit_result_is_an_operand_of_the_next_product(orders):
    c = gemm_wgmma.plan(problem(128, 128, 64, orders, 256, "float16", "float16")).c
    c_order = orders[2]
    following = problem(128, 128, 128, f"{c_order}{c_order}r", 256)
    assert c.can_serve_as(gemm_wgmma.plan(following).a)
    assert c.can_serve_as(gemm_wgmma.plan(following).b)
