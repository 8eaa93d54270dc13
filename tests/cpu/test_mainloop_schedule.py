"""The order of tiles: every tile once, whatever the grid, and the same in C++ and Python; the ring's parities."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

from devmath.lto.mainloop_plan import GROUP, tile_number

INCLUDE = Path(__file__).parents[2] / "devmath" / "lto" / "include"
ROWS, COLS = 128, 96
PROGRAM = f"""\
#include "devmath/gemm/ring.cuh"
#include "devmath/gemm/scheduler.cuh"
using namespace devmath;
using Schedule = TileSchedule<{ROWS}, {COLS}, {GROUP}>;

/// Cells of four numbers for each tile of one block; returns how many tiles.
extern "C" int walk(int rows, int cols, int block, int blocks, int* cells) {{
  TileCursor cursor;
  int count = 0;
  Schedule::begin(cursor, rows, cols, block, blocks);
  for (Schedule::advance(cursor); cursor.has_tile; Schedule::advance(cursor), ++count) {{
    const int cell[4] = {{cursor.row, cursor.col, cursor.rows, cursor.cols}};
    for (int i = 0; i < 4; ++i) cells[4 * count + i] = cell[i];
  }}
  return count;
}}

/// Stage and parity of each of `count` steps.
extern "C" void turn(int count, int* cells) {{
  RingPosition<3> position = {{0, 0}};
  for (int i = 0; i < count; ++i, position.advance()) {{
    cells[2 * i] = position.stage;
    cells[2 * i + 1] = position.parity;
  }}
}}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("schedule")
    source, output = folder / "schedule.cpp", folder / "schedule.so"
    source.write_text(PROGRAM)
    flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-shared", "-fPIC"]
    subprocess.run(["g++", *flags, f"-I{INCLUDE}", source, "-o", output], check=True)
    return ctypes.CDLL(str(output))


def walk(library, rows, cols, block, blocks):
    """Return (row, col, rows, cols) of each tile of a block."""
    most = -(-rows // ROWS) * -(-cols // COLS)
    cells = np.zeros((most + 1, 4), np.int32)
    count = library.walk(rows, cols, block, blocks, cells.ctypes.data_as(ctypes.c_void_p))
    return cells[:count]


EXTENTS = [(0, 5), (5, 0), (1, 1), (128, 96), (129, 97), (1000, 700), (17 * 128 + 1, 5 * 96), (4096, 96), (100, 3000)]


@pytest.mark.parametrize("extents", EXTENTS, ids=str)
@pytest.mark.parametrize("blocks", [1, 2, 7, 132, 5000])
def test_blocks_cover_every_element_once(library, extents, blocks):
    rows, cols = extents
    visits = np.zeros(extents, np.int32)
    for block in range(min(blocks, 200)):
        for row, col, height, width in walk(library, rows, cols, block, blocks):
            assert min(height, width) > 0
            visits[row : row + height, col : col + width] += 1
            assert row + height == min(row + ROWS, rows)
            assert col + width == min(col + COLS, cols)
    assert (visits == 1).all()


@pytest.mark.parametrize("extents", EXTENTS, ids=str)
def test_the_order_is_that_of_python(library, extents):
    down, across = -(-extents[0] // ROWS), -(-extents[1] // COLS)
    want = [tile_number(i, down, across) for i in range(down * across)]
    got = walk(library, *extents, 0, 1)[:, :2] // (ROWS, COLS)
    assert got.tolist() == [list(place) for place in want]


def test_tiles_of_one_time_share_rows_and_columns():
    places = [tile_number(i, 64, 32) for i in range(128)]
    assert len({row for row, _ in places}) + len({col for _, col in places}) <= 24


def test_the_longest_matrix_does_not_overflow(library):
    rows, cells = 2**31 - 1, np.zeros((1, 4), np.int32)
    last = -(-rows // ROWS) - 1
    assert library.walk(rows, 1, last, 2**31 - 1, cells.ctypes.data_as(ctypes.c_void_p)) == 1
    assert cells[0].tolist() == [last * ROWS, 0, rows - last * ROWS, 1]


def test_the_parity_flips_each_round(library):
    cells = np.zeros((10, 2), np.int32)
    library.turn(10, cells.ctypes.data_as(ctypes.c_void_p))
    assert cells.tolist() == [[i % 3, i // 3 % 2] for i in range(10)]
