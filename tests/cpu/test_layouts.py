"""Tile layouts: the rule, in Python and in C++."""

import ctypes
from dataclasses import replace

import numpy as np
import pytest
from tile_block import build_library, offsets

from devmath.dtypes import BY_NAME
from devmath.layouts import CHUNK_BYTES, TileLayout
from devmath.lto.tile_source import layout_text, plain_layout_text

LAYOUTS = [
    TileLayout(BY_NAME["float32"], 5, 7, "row", 7, 5),
    TileLayout(BY_NAME["float64"], 5, 7, "col", 6, 8),
    *(TileLayout(BY_NAME["float16"], 20, 8 * s, "row", 8 * s, 24, s) for s in (2, 4, 8)),
    *(TileLayout(BY_NAME["complex64"], 2 * s, 19, "col", 2 * s, 19, s) for s in (2, 4, 8)),
    TileLayout(BY_NAME["bfloat16"], 33, 50, "row", 128, 40, 8),
    TileLayout(BY_NAME["complex128"], 8, 8, "col", 8, 8, 8),
    TileLayout(BY_NAME["float16"], 20, 128, "row", 64, 24, 8),  # two panels
    TileLayout(BY_NAME["bfloat16"], 80, 19, "col", 32, 24, 4),  # two and a half
    TileLayout(BY_NAME["float16"], 9, 48, "row", 16, 16, 2),
    TileLayout(BY_NAME["float32"], 5, 7, "row", 4, 6),
]
IDS = [f"{x.dtype.name}-{x.rows}x{x.cols}-{x.order}-ld{x.ld}-swizzle{x.swizzle}" for x in LAYOUTS]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Functions offsets0, offsets1, ... for all layouts, plain_row and plain_col for 5 x 7 arrays of the user's."""
    texts = {f"offsets{i}": layout_text(layout) for i, layout in enumerate(LAYOUTS)}
    texts |= {f"plain_{order}": plain_layout_text(BY_NAME["float16"], 5, 7, order) for order in ("row", "col")}
    functions = {f"{name}(int ld, int* out)": f"write_offsets<{text}>(ld, out)" for name, text in texts.items()}
    return build_library(tmp_path_factory.mktemp("layouts"), functions)


def cpp_offsets(function, ld, rows, cols):
    out = np.full((rows, cols), -1, np.intc)
    function(ctypes.c_int(ld), out.ctypes.data_as(ctypes.c_void_p))
    return out


@pytest.mark.parametrize("layout", LAYOUTS, ids=IDS)
def test_each_element_has_a_place_of_its_own_inside_the_tile(layout):
    places = np.unique(offsets(layout))
    assert places.size == layout.rows * layout.cols
    assert places[0] >= 0
    assert (places[-1] + 1) * layout.dtype.itemsize <= layout.size_bytes


@pytest.mark.parametrize("layout", [layout for layout in LAYOUTS if layout.swizzle], ids=lambda x: f"{x.swizzle}")
def test_a_swizzle_keeps_chunks_whole_and_in_their_line(layout):
    chunk_length = CHUNK_BYTES // layout.dtype.itemsize
    line, position = np.indices((layout.lines, layout.line_length))
    places = offsets(layout) if layout.order == "row" else offsets(layout).T
    assert np.array_equal(places // layout.ld, line + position // layout.ld * layout.lines_allocated)
    assert np.array_equal(places % chunk_length, position % chunk_length)


@pytest.mark.parametrize("layout", LAYOUTS, ids=IDS)
def test_cpp_agrees(library, layout):
    function = getattr(library, f"offsets{LAYOUTS.index(layout)}")
    assert np.array_equal(cpp_offsets(function, layout.ld, layout.rows, layout.cols), offsets(layout))


def test_plain_layouts_take_the_leading_dimension_at_run_time(library):
    row, col = np.indices((5, 7))
    assert np.array_equal(cpp_offsets(library.plain_row, 11, 5, 7), row * 11 + col)
    assert np.array_equal(cpp_offsets(library.plain_col, 9, 5, 7), col * 9 + row)


def test_row_and_col_order_differ_in_what_runs_along_a_line():
    row = TileLayout(BY_NAME["float32"], 5, 7, "row", 8, 6)
    col = TileLayout(BY_NAME["float32"], 5, 7, "col", 8, 9)
    assert (row.lines, row.line_length, row.size_bytes, row.offset(2, 3)) == (5, 7, 6 * 8 * 4, 2 * 8 + 3)
    assert (col.lines, col.line_length, col.size_bytes, col.offset(2, 3)) == (7, 5, 9 * 8 * 4, 3 * 8 + 2)


@pytest.mark.parametrize(
    ("swizzle", "chunks_of_line_6"),
    [(2, [1, 0]), (4, [3, 2, 1, 0]), (8, [6, 7, 4, 5, 2, 3, 0, 1])],  # 6 // 4 = 1, 6 // 2 = 3, 6 // 1 = 6
)
def test_swizzles_permute_chunks_as_the_hardware_does(swizzle, chunks_of_line_6):
    layout = TileLayout(BY_NAME["float16"], 8, 8 * swizzle, "row", 8 * swizzle, 8, swizzle)
    chunks = layout.offset(6, 8 * np.arange(swizzle)) % layout.ld // 8
    assert chunks.tolist() == chunks_of_line_6


def test_a_line_goes_on_in_the_next_panel():
    layout = TileLayout(BY_NAME["float16"], 20, 128, "row", 64, 24, 8)
    whole = TileLayout(BY_NAME["float16"], 20, 64, "row", 64, 24, 8)
    row, col = np.indices((20, 64))
    assert np.array_equal(layout.offset(row, col), whole.offset(row, col))
    assert np.array_equal(layout.offset(row, col + 64), whole.offset(row, col) + 24 * 64)
    assert (layout.panels, layout.size_bytes) == (2, 2 * whole.size_bytes)


@pytest.mark.parametrize(("swizzle", "alignment_bytes"), [(0, 128), (2, 256), (4, 512), (8, 1024)])
def test_a_tile_starts_where_its_swizzle_does(swizzle, alignment_bytes):
    ld = 8 * swizzle or 40
    assert TileLayout(BY_NAME["float16"], 8, ld, "row", ld, 8, swizzle).alignment_bytes == alignment_bytes


@pytest.mark.parametrize("layout", LAYOUTS, ids=IDS)
def test_each_tile_of_a_stack_is_aligned(layout):
    assert layout.stage_bytes % layout.alignment_bytes == 0
    assert 0 <= layout.stage_bytes - layout.size_bytes < layout.alignment_bytes


def test_surplus_lines_hurt_no_tile_of_one_panel():
    one, two = (TileLayout(BY_NAME["float16"], 20, cols, "row", 64, 24, 8) for cols in (64, 128))
    assert replace(one, lines_allocated=32).can_serve_as(one)
    assert not replace(one, lines_allocated=20).can_serve_as(one)
    assert two.can_serve_as(two)
    assert not replace(two, lines_allocated=32).can_serve_as(two)
    assert not replace(one, swizzle=4).can_serve_as(one)
