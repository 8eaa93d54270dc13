"""What the planners decide: who holds which element of C, where tiles lie, how many threads."""

from itertools import product

import numpy as np
import pytest
from holders import assert_held_once
from memory_banks import conflicts

from devmath.dtypes import BY_NAME
from devmath.lto.gemm_plan import max_accumulator_words
from devmath.lto.variants import select
from tests.problems import problem

REAL_AND_COMPLEX = ("float32", "float64", "complex64", "complex128")
NARROW = ("float16", "bfloat16")
ORDERS = tuple(product(("row", "col"), repeat=3))
ROW = ("row", "row", "row")
SIZES = ((1, 1, 1), (8, 8, 8), (50, 37, 19), (16, 104, 32), (32, 32, 64), (96, 80, 40), (128, 128, 64), (200, 9, 3))
THREADS = (None, 32, 96, 256, 384, 1024)


def plan(m, n, k, dtype, orders=ROW, threads=None, c_dtype=None):
    wanted = problem(m, n, k, dtype, orders, threads, c_dtype)
    return select(wanted).plan(wanted)


def coordinates(gemm):
    """Row and column of every accumulator of every thread, and whether C has that element."""
    threads, registers = np.indices((gemm.threads, gemm.fragment.size))
    fragment = gemm.fragment
    return fragment.row(threads, registers), fragment.col(threads, registers), fragment.in_bounds(threads, registers)


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", [*REAL_AND_COMPLEX, *NARROW])
def test_every_element_of_c_is_held_once(dtype, size, threads):
    m, n, _ = size
    for a_order, b_order in product(("row", "col"), repeat=2):
        gemm = plan(*size, dtype, (a_order, b_order, "row"), threads)
        assert_held_once(gemm, m, n)
        assert threads in (None, gemm.threads)


@pytest.mark.parametrize("orders", ORDERS)
@pytest.mark.parametrize("dtype", [*REAL_AND_COMPLEX, *NARROW])
def test_tiles_are_those_that_were_asked_for(dtype, orders):
    gemm = plan(50, 37, 19, dtype, orders)
    assert [(tile.rows, tile.cols) for tile in (gemm.a, gemm.b, gemm.c)] == [(50, 19), (19, 37), (50, 37)]
    assert tuple(tile.order for tile in (gemm.a, gemm.b, gemm.c)) == orders
    for tile in (gemm.a, gemm.b, gemm.c):
        assert tile.ld >= tile.line_length
        assert tile.ld * tile.dtype.itemsize % 16 == 0
        assert tile.lines_allocated >= tile.lines
    assert gemm.c.lines_allocated == gemm.c.lines  # nothing is written past C


@pytest.mark.parametrize("orders", [("row", "col", "row"), ("col", "row", "row")])
@pytest.mark.parametrize("dtype", [*REAL_AND_COMPLEX, *NARROW])
def test_many_threads_take_no_more_memory(dtype, orders):
    """32 warps on a tile for one: most of them start past its edge, and read what others read."""
    few, many = (plan(16, 8, 64, dtype, orders, threads) for threads in (32, 1024))
    assert many.a.size_bytes <= few.a.size_bytes
    assert many.b.size_bytes <= few.b.size_bytes


@pytest.mark.parametrize(
    ("line", "swizzle", "ld"),
    [(64, 8, 64), (128, 8, 128), (32, 4, 32), (96, 4, 96), (16, 2, 16), (37, 0, 40), (24, 0, 24)],
)
def test_16_bit_tiles_are_swizzled_where_their_lines_allow(line, swizzle, ld):
    tile = plan(64, 64, line, "float16").a
    assert (tile.swizzle, tile.ld) == (swizzle, ld)


@pytest.mark.parametrize("orders", [orders for orders in ORDERS if orders[2] == "row"])
@pytest.mark.parametrize("dtype", REAL_AND_COMPLEX)
def test_reads_of_fma_have_no_bank_conflicts(dtype, orders):
    """16 bytes along k, or the group of neighbours that the template names last."""
    chunk = 16 // BY_NAME[dtype].itemsize
    for size, threads in product(SIZES, (None, 32, 96)):
        gemm = plan(*size, dtype, orders, threads)
        row_group, col_group = (int(number) for number in gemm.template.split(",")[3:5])
        lanes = np.arange(32)
        rows, cols = gemm.fragment.row(lanes, 0), gemm.fragment.col(lanes, 0)
        for tile, offsets, length in (
            (gemm.a, gemm.a.offset(rows, 0), chunk if orders[0] == "row" else row_group),
            (gemm.b, gemm.b.offset(0, cols), chunk if orders[1] == "col" else col_group),
        ):
            itemsize = tile.dtype.itemsize
            assert conflicts(offsets * itemsize, length * itemsize) == 0


@pytest.mark.parametrize("order", ["row", "col"])
@pytest.mark.parametrize("extent", [8, 16, 24, 32, 37, 48, 64, 80, 96, 128, 200])
def test_ldmatrix_has_no_bank_conflicts(extent, order):
    """The eight 16-byte rows of any 8x8 matrix lie along the lines of the tile."""
    for tile in (plan(extent, 64, 64, "float16", (order, "row", "row")).a, plan(64, extent, 48, "float16").b):
        for line, position in product(range(0, tile.lines, 8), range(0, tile.line_length, 8)):
            lines = line + np.arange(8)
            where = (lines, position) if tile.order == "row" else (position, lines)
            assert conflicts(tile.offset(*where) * 2, 16) == 0


@pytest.mark.parametrize("c_dtype", ["float32", "float16"])
@pytest.mark.parametrize("n", [16, 32, 48, 64, 128])
def test_writes_of_mma_have_no_bank_conflicts(n, c_dtype):
    """Each lane writes two neighbours of a row."""
    gemm = plan(64, n, 64, "float16", c_dtype=c_dtype)
    lanes = np.arange(32)
    offsets = gemm.c.offset(gemm.fragment.row(lanes, 0), gemm.fragment.col(lanes, 0))
    itemsize = gemm.c.dtype.itemsize
    assert conflicts(offsets * itemsize, 2 * itemsize) == 0


@pytest.mark.parametrize(
    ("m", "n", "dtype", "threads"),
    [
        (1, 1, "float32", 32),
        (16, 16, "float16", 32),
        (32, 32, "float32", 64),
        (64, 64, "float32", 128),
        (64, 64, "float16", 128),
        (128, 128, "float32", 256),
        (128, 128, "bfloat16", 256),
        (128, 256, "float16", 256),
        (64, 64, "complex128", 256),
        (128, 128, "complex64", 256),  # 512 threads would have to spill some
        (64, 128, "complex128", 256),
        (512, 512, "float64", 512),
    ],
)
def test_default_threads(m, n, dtype, threads):
    assert plan(m, n, 32, dtype).threads == threads


@pytest.mark.parametrize("size", [*SIZES, (128, 256, 32), (250, 130, 16), (33, 700, 8)])
@pytest.mark.parametrize("dtype", [*REAL_AND_COMPLEX, *NARROW])
def test_register_form_fits_by_default_where_half_of_the_registers_hold_c(dtype, size):
    gemm = plan(*size, dtype)
    rows, cols, _ = coordinates(gemm)
    covered_words = (rows.max() + 1) * (cols.max() + 1) * gemm.problem.words_each
    assert (gemm.register_form_problem is None) == (covered_words <= 32768)


@pytest.mark.parametrize("dtype", [*REAL_AND_COMPLEX, *NARROW])
def test_advice_on_threads_holds(dtype):
    """Where a sentence names a number of threads, that number has room."""
    named = 0
    for m, n in ((128, 128), (100, 90), (64, 200), (40, 40)):
        sentence = plan(m, n, 16, dtype, threads=32).register_form_problem
        if sentence and "threads hold it" in sentence:
            threads = int(sentence.split(": ")[1].split()[0])
            assert plan(m, n, 16, dtype, threads=threads).register_form_problem is None
            named += 1
    assert named > 0


def test_a_tile_too_large_for_any_block_says_so():
    sentence = plan(256, 256, 16, "float32", threads=512).register_form_problem
    assert sentence == (
        "the accumulator of a thread must be at most 64 32-bit words with 512 threads, got 128 for 256 x 256 float32: "
        "take a smaller m or n"
    )


@pytest.mark.parametrize(("threads", "words"), [(32, 128), (256, 128), (384, 85), (512, 64), (1024, 24)])
def test_accumulators_leave_half_of_the_registers(threads, words):
    assert max_accumulator_words(threads, words_each=1) == words


@pytest.mark.parametrize(("threads", "words"), [(32, 128), (256, 128), (384, 63), (512, 48), (1024, 24)])
@pytest.mark.parametrize("words_each", [2, 4])
def test_wide_sums_leave_more_where_registers_are_scarce(threads, words, words_each):
    assert max_accumulator_words(threads, words_each) == words


def test_plans_are_cached():
    assert plan(64, 64, 32, "float32") is plan(64, 64, 32, "float32")
