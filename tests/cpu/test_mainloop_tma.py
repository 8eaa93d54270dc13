"""The mainloop by TMA and wgmma as plain C++, one thread a CUDA thread: ring, tiles and store, at every edge."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

import devmath
from devmath.dtypes import lookup
from devmath.lto import mainloop_source
from tests import mainloop
from tests.oracle import gemm_error, normal, unset

HERE = Path(__file__).parent
INCLUDE = HERE.parents[1] / "devmath" / "lto" / "include"
FLAGS = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-Wno-unused-local-typedefs"]
BLOCKS = 2


def _mainloop(m, n, k, dtype, **fields):
    return devmath.Gemm(m, n, k, dtype, mainloop=True, **fields)


CASES = (
    *(_mainloop(64, 64, 64, "float16", a_order=a, b_order=b) for a, b in mainloop.ORDERS),
    _mainloop(128, 128, 32, "bfloat16", threads=256, b_order="col"),
    _mainloop(128, 64, 64, "float16", threads=256, a_order="col"),
    _mainloop(100, 72, 48, "float16", threads=128),
    _mainloop(64, 128, 32, "float16", threads=256),  # warpgroups side by side
    _mainloop(128, 64, 32, "bfloat16", threads=128, b_order="col"),  # two passes
    _mainloop(96, 96, 32, "float16", threads=128, a_order="col"),
    _mainloop(64, 64, 64, "int8", threads=128, b_order="col", b_dtype="uint8"),
)
STORED = ("float16", "bfloat16", "float32")


class Map(ctypes.Structure):
    """EmulatedMap of mainloop_block.hpp."""

    _fields_ = [
        ("base", ctypes.c_void_p),
        *((name, ctypes.c_longlong) for name in ("lines", "length", "pitch_bytes")),
        *((name, ctypes.c_int) for name in ("item_bytes", "box_lines", "box_length", "swizzle")),
    ]


def emulated_map(array, box):
    """Return the map of an array whose lines are its rows or its columns."""
    lines = array if box.order == "row" else array.T
    numbers = (lines.shape[0], lines.shape[1], lines.strides[0], array.itemsize, box.lines, box.length, box.swizzle)
    return Map(lines.__array_interface__["data"][0], *numbers)


def program(mm, planned, c_dtype):
    """C++ text: the functions of a mainloop, and one that runs a grid of them."""
    by_tma = "c" in planned.boxes(lookup(c_dtype))
    units = [
        mainloop_source.begin(planned, True, "unit_begin"),
        mainloop_source.advance(planned, True, "unit_advance"),
        mainloop_source.multiply(planned, True, "unit_multiply"),
        *([mainloop_source.store(planned, lookup(c_dtype), "unit_store")] if by_tma else []),
    ]
    fragment, sums = mainloop_source.fragment_text(planned.tile.fragment), planned.tile.accumulator.cpp
    by_hand = f"""
      using Fragment = {fragment};
      for (int i = 0; i < Fragment::size; ++i) {{
        const int row = Fragment::row(block_rank(), i), col = Fragment::col(block_rank(), i);
        if (Fragment::in_bounds(block_rank(), i) && row < cursor.rows && col < cursor.cols) {{
          *(decltype(&acc[0]))(c->base + (cursor.row + row) * c->pitch_bytes +
                               (cursor.col + col) * c->item_bytes) = acc[i];
        }}
      }}"""
    return f"""\
#include "mainloop_block.hpp"
{"".join(units)}
using namespace devmath;

/// Tiles with an odd number are not multiplied where `skips`.
extern "C" void run(const EmulatedMap* a, const EmulatedMap* b, const EmulatedMap* c, i64 rows, i64 cols, i64 depth,
                    int blocks, int skips) {{
  launch(blocks, {planned.threads}, {planned.shared_bytes}, [=](char* smem) {{
    alignas(16) char state[{mainloop_source.STATE_BYTES}];
    {sums} acc[{planned.tile.fragment.size}];
    const TileCursor& cursor = *(const TileCursor*)state;
    unit_begin(state, smem, a, b, rows, cols, depth);
    int number = 0;
    for (unit_advance(state); cursor.has_tile; unit_advance(state)) {{
      if (skips && number++ % 2) continue;
      unit_multiply(state, acc);
      {"unit_store(state, acc, c);" if by_tma else by_hand}
    }}
  }});
}}
"""


def build(folder, mm, c_dtype):
    source, output = folder / "mainloop.cpp", folder / "mainloop.so"
    source.write_text(program(mm, mm.mainloop_on("sm_90a"), c_dtype))
    subprocess.run(["g++", *FLAGS, "-shared", "-fPIC", "-pthread", f"-I{INCLUDE}", f"-I{HERE}", source, "-o", output],
                   check=True)  # fmt: skip
    return ctypes.CDLL(str(output))


def result_dtypes(mm):
    """Types of C that leave in different ways: by TMA where there are boxes."""
    if mm.accumulator_dtype.kind == "i":
        return (mm.accumulator_dtype,)
    return (mm.dtype, np.float32) if mm.threads == 256 else (mm.dtype,)


PARAMETERS = [(mm, np.dtype(c)) for mm in CASES for c in result_dtypes(mm)]


@pytest.fixture(scope="module", params=PARAMETERS, ids=lambda case: f"{case[0]} to {case[1]}")
def built(request, tmp_path_factory):
    mm, c_dtype = request.param
    if "c" not in mm.mainloop_on("sm_90a").boxes(lookup(c_dtype)):
        c_dtype = mm.accumulator_dtype  # by hand, as it is
    return mm, np.dtype(c_dtype), build(tmp_path_factory.mktemp("mainloop"), mm, c_dtype)


def padded(array, order):
    """The same array with eight elements of poison after each line."""
    lines = array if order == "row" else array.T
    memory = np.pad(lines, ((0, 1), (0, 8)), constant_values=77)[: lines.shape[0], : lines.shape[1]]
    return memory if order == "row" else memory.T


def run(mm, c_dtype, library, a, b, skips=0, blocks=BLOCKS):
    (m, k), n = a.shape, b.shape[1]
    planned, rng = mm.mainloop_on("sm_90a"), np.random.default_rng()
    boxes = planned.boxes(lookup(c_dtype))
    frame = normal(rng, (m + 9, n + 16), np.float32).astype(c_dtype)
    c = frame[4 : m + 4, 8 : n + 8]
    c[...] = unset(c.shape, c_dtype)
    box_c = boxes.get("c", boxes["a"])
    on_a, on_b = padded(a, mm.a_order), padded(b, mm.b_order)
    maps = [
        emulated_map(on_a, boxes["a"]),
        emulated_map(on_b, boxes["b"]),
        emulated_map(c, box_c.__class__("row", box_c.lines, box_c.length, box_c.swizzle)),
    ]
    before = frame.copy()
    extents = map(ctypes.c_longlong, (m, n, k))
    library.run(*map(ctypes.byref, maps), *extents, blocks, skips)
    before[4 : m + 4, 8 : n + 8] = c
    assert before.tobytes() == frame.tobytes(), "something beside C was written"
    return c


def test_matrices_of_any_size(built):
    mm, c_dtype, library = built
    rng = np.random.default_rng()
    shapes = ((mm.m, mm.n, mm.k), (2 * mm.m + 1, 2 * mm.n - 5, 7 * mm.k + 3), (5, 8, 0), (0, 8, 8))
    for m, n, k in shapes:
        a, b = mainloop.matrices(rng, mm, m, n, k)
        c = run(mm, c_dtype, library, a, b)
        assert gemm_error(c, mainloop.expected(a, b, mm)) < mainloop.bound(mm, c_dtype), (m, n, k)


def test_tiles_that_are_left_out(built):
    mm, c_dtype, library = built
    a, b = mainloop.matrices(np.random.default_rng(), mm, 3 * mm.m, mm.n, 3 * mm.k)
    c = run(mm, c_dtype, library, a, b, skips=1, blocks=1)
    want = mainloop.expected(a, b, mm)
    for tile in range(3):
        rows = slice(tile * mm.m, (tile + 1) * mm.m)
        if tile % 2:
            assert np.array_equal(c[rows], unset(c[rows].shape, c_dtype), equal_nan=c_dtype.kind != "i")
        else:
            assert gemm_error(c[rows], want[rows]) < mainloop.bound(mm, c_dtype)
