"""Tiles from and to arrays of any shape and strides: the C++ headers, compiled as plain C++, against NumPy."""

import ctypes

import numpy as np
import pytest
from tile_block import (
    ARGUMENTS,
    GUARD_BYTES,
    PARAMETERS,
    STRIDES,
    WRITABLE_STRIDES,
    build_library,
    call_with_array,
    guarded_array,
    offsets,
    random_bytes,
    random_elements,
    shapes,
    strides,
)

from devmath.dtypes import BY_NAME
from devmath.layouts import CHUNK_BYTES, TileLayout
from devmath.lto.tile_source import element_text, layout_text


def tile(dtype, rows, cols, order, ld, swizzle=0):
    """Return a layout with one line to spare."""
    lines = rows if order == "row" else cols
    return TileLayout(BY_NAME[dtype], rows, cols, order, ld, lines + 1, swizzle)


# (layout, threads of the block, dtype of the arrays that the tile is stored to)
CASES = [
    (tile("float32", 32, 64, "row", 68), 128, "float32"),
    (tile("float32", 16, 32, "col", 16, 2), 32, "float16"),
    (tile("float32", 5, 7, "row", 7), 32, "bfloat16"),  # lines of no whole chunks
    (tile("float32", 9, 13, "col", 12), 96, "float64"),
    (tile("float16", 64, 64, "row", 64, 8), 128, "float16"),
    (tile("float16", 24, 64, "row", 72), 128, "float16"),  # 12 elements a thread: one batch and a half
    (tile("float16", 33, 17, "col", 40), 96, "float32"),
    (tile("float16", 16, 32, "row", 32, 4), 256, "complex64"),
    (tile("bfloat16", 24, 40, "col", 64, 8), 64, "bfloat16"),
    (tile("bfloat16", 7, 70, "row", 72), 37, "float16"),  # a prime number of threads
    (tile("float64", 8, 16, "row", 16, 4), 64, "float64"),
    (tile("float64", 3, 50, "col", 5), 32, "float32"),
    (tile("complex64", 12, 16, "row", 16, 8), 32, "complex64"),
    (tile("complex64", 6, 5, "col", 7), 128, "complex128"),
    (tile("complex128", 8, 8, "row", 8, 8), 32, "complex128"),
    (tile("complex128", 5, 9, "col", 5), 64, "complex64"),
    (tile("float32", 1, 300, "row", 300), 64, "float32"),  # a line longer than the block
    (tile("float32", 1, 1, "col", 4), 32, "float32"),
    (tile("float16", 24, 128, "row", 64, 8), 128, "float16"),  # two panels
    (tile("int8", 70, 64, "row", 64, 4), 64, "int8"),
    (tile("uint8", 19, 50, "col", 48), 37, "int32"),
    (tile("float8_e4m3fn", 33, 21, "row", 48), 96, "float32"),
    (tile("float8_e5m2", 40, 200, "col", 64, 4), 128, "float8_e4m3fn"),  # panels
    (tile("int32", 9, 12, "col", 12), 32, "float16"),
    (tile("int8", 9, 12, "col", 10), 32, "float32"),  # lines of no whole chunks
    (tile("bfloat16", 50, 9, "col", 16, 2), 96, "float32"),  # three and a bit
]
IDS = [f"{c.dtype.name}-{c.rows}x{c.cols}-{c.order}-ld{c.ld}-swizzle{c.swizzle}-{t}-{to}" for c, t, to in CASES]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Functions load0, store0, count0_along, count0_across, load1, ... for all cases."""
    functions = {}
    for i, (layout, threads, to) in enumerate(CASES):
        block, to_text = f"{layout_text(layout)}, {threads}", element_text(BY_NAME[to])
        functions[f"load{i}(void* tile, const void* array, {PARAMETERS})"] = (
            f"load_by_block<{block}>(tile, array, {ARGUMENTS})"
        )
        functions[f"store{i}(const void* tile, void* array, {PARAMETERS})"] = (
            f"store_by_block<{block}, {to_text}>(tile, array, {ARGUMENTS})"
        )
        for name, across in (("along", "false"), ("across", "true")):
            functions[f"count{i}_{name}(int* counts)"] = (
                f"count_cells<{threads}, {layout.lines}, {layout.line_length}, {across}>(counts)"
            )
    return build_library(tmp_path_factory.mktemp("tiles"), functions)


@pytest.mark.parametrize("name", STRIDES)
@pytest.mark.parametrize("case", range(len(CASES)), ids=IDS)
def test_load_fills_the_tile_with_the_array_and_zeros(library, case, name):
    layout = CASES[case][0]
    dtype = layout.dtype.numpy
    for shape in shapes(layout.rows, layout.cols):
        for shift in (0, dtype.alignment):
            bytes_of_array, view = guarded_array(dtype, shape, strides(dtype.itemsize, *shape)[name], shift)
            array = view(bytes_of_array)
            memory = random_bytes(layout.size_bytes + 2 * GUARD_BYTES)
            before = memory.copy()
            call_with_array(getattr(library, f"load{case}"), memory[GUARD_BYTES:], array)

            expected = np.zeros((layout.rows, layout.cols), dtype)
            part = array[: layout.rows, : layout.cols]
            expected[: part.shape[0], : part.shape[1]] = part
            loaded = memory[GUARD_BYTES:-GUARD_BYTES].view(dtype)[offsets(layout)]
            assert loaded.tobytes() == expected.tobytes()
            assert np.array_equal(memory[~writable(layout)], before[~writable(layout)])


def writable(layout):
    """Return which bytes a load may write: those of the elements, and of the chunks that hold some."""
    elements = np.zeros(layout.size_bytes // layout.dtype.itemsize, bool)
    elements[offsets(layout)] = True
    chunk_length = CHUNK_BYTES // layout.dtype.itemsize
    if layout.ld % chunk_length == 0:
        elements = elements.reshape(-1, chunk_length).any(axis=1).repeat(chunk_length)
    return np.pad(elements.repeat(layout.dtype.itemsize), GUARD_BYTES)


@pytest.mark.parametrize("name", WRITABLE_STRIDES)
@pytest.mark.parametrize("case", range(len(CASES)), ids=IDS)
def test_store_writes_the_part_that_tile_and_array_share(library, case, name):
    layout, _, to = CASES[case]
    dtype = BY_NAME[to].numpy
    elements = random_elements(layout.dtype.numpy, (layout.rows, layout.cols))
    smem = random_bytes(layout.size_bytes)
    smem.view(layout.dtype.numpy)[offsets(layout)] = elements
    for shape in shapes(layout.rows, layout.cols):
        for shift in (0, dtype.alignment):
            memory, view = guarded_array(dtype, shape, strides(dtype.itemsize, *shape)[name], shift)
            expected = memory.copy()
            part = view(expected)[: layout.rows, : layout.cols]
            part[...] = elements[: part.shape[0], : part.shape[1]].astype(dtype)
            call_with_array(getattr(library, f"store{case}"), smem, view(memory))
            assert np.array_equal(memory, expected)


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("case", range(len(CASES)), ids=IDS)
def test_a_block_walks_over_every_cell_once(library, case, across):
    layout = CASES[case][0]
    counts = np.zeros((layout.lines, layout.line_length), np.intc)
    getattr(library, f"count{case}_{'across' if across else 'along'}")(ctypes.c_void_p(counts.ctypes.data))
    assert (counts == 1).all()


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0)])
def test_empty_arrays_load_zeros_and_store_nothing(library, shape):
    layout = CASES[0][0]
    memory, view = guarded_array(layout.dtype.numpy, shape, (shape[1] * 4, 4))
    before = memory.copy()
    smem = random_bytes(layout.size_bytes)
    call_with_array(library.store0, smem, view(memory))
    assert np.array_equal(memory, before)
    call_with_array(library.load0, smem, view(memory))
    assert not smem.view(np.float32)[offsets(layout)].any()
