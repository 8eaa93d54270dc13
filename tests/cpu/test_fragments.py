"""Fragments: which thread holds what, in Python and in C++, and the stores of fragments."""

import ctypes

import numpy as np
import pytest
from tile_block import (
    ARGUMENTS,
    PARAMETERS,
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
from devmath.fragments import Digits, FragmentMap
from devmath.layouts import TileLayout
from devmath.lto.tile_source import element_text, fragment_text, layout_text


def mma(rows, cols, tiles_m, tiles_n):
    """Return the accumulators of two warps, one above the other, each of tiles_m x tiles_n mma.m16n8 instructions."""
    return FragmentMap(
        rows,
        cols,
        4 * tiles_m * tiles_n,
        row_of_thread=Digits(((4, 8, 1), (32, 2, 16 * tiles_m))),
        row_of_register=Digits(((2, 2, 8), (4, tiles_m, 16))),
        col_of_thread=Digits(((1, 4, 2),)),
        col_of_register=Digits(((1, 2, 1), (4 * tiles_m, tiles_n, 8))),
    )


def strided(rows, cols, size_m, size_n):
    """Return size_m x size_n elements a thread, 8 rows and 8 columns apart, of 64 threads."""
    return FragmentMap(
        rows,
        cols,
        size_m * size_n,
        row_of_thread=Digits(((8, 8, 1),)),
        row_of_register=Digits(((size_n, size_m, 8),)),
        col_of_thread=Digits(((1, 8, 1),)),
        col_of_register=Digits(((1, size_n, 8),)),
    )


THREADS = 64
# (fragment, its dtype, the dtype of the arrays that it is stored to, the tile that it is stored to)
CASES = [
    (mma(64, 16, 2, 2), "float32", "float32", TileLayout(BY_NAME["float32"], 64, 16, "row", 16, 64, 4)),
    (mma(60, 13, 2, 2), "float32", "float16", TileLayout(BY_NAME["float16"], 60, 13, "col", 72, 13)),
    (mma(32, 24, 1, 3), "float32", "bfloat16", TileLayout(BY_NAME["bfloat16"], 32, 24, "row", 64, 32, 8)),
    (mma(32, 8, 1, 1), "float64", "float64", TileLayout(BY_NAME["float64"], 20, 30, "row", 30, 20)),
    (strided(16, 16, 2, 2), "complex64", "complex64", TileLayout(BY_NAME["complex64"], 16, 16, "row", 16, 16, 8)),
    (strided(21, 10, 3, 2), "complex128", "complex64", TileLayout(BY_NAME["complex64"], 24, 16, "col", 24, 16)),
    (strided(5, 8, 1, 1), "float16", "complex128", TileLayout(BY_NAME["complex128"], 5, 8, "row", 8, 5)),
]
IDS = [f"{f.rows}x{f.cols}-{f.size}-{dtype}-{to}" for f, dtype, to, _ in CASES]
CASE = pytest.mark.parametrize("case", range(len(CASES)), ids=IDS)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Functions cells0, store0, store_to_tile0, cells1, ... for all cases."""
    functions = {}
    for i, (fragment, dtype, to, layout) in enumerate(CASES):
        text = fragment_text(fragment)
        block = f"{text}, {THREADS}, {element_text(BY_NAME[dtype])}"
        functions[f"cells{i}(int* cells)"] = f"write_cells<{text}>({THREADS}, cells)"
        functions[f"paired{i}(int* paired)"] = f"*paired = {text}::has_column_pairs()"
        functions[f"store{i}(const void* fragments, void* array, {PARAMETERS})"] = (
            f"store_fragment_by_block<{block}, {element_text(BY_NAME[to])}>(fragments, array, {ARGUMENTS})"
        )
        functions[f"store_to_tile{i}(const void* fragments, void* tile)"] = (
            f"store_fragment_to_tile_by_block<{block}, {layout_text(layout)}>(fragments, tile)"
        )
    return build_library(tmp_path_factory.mktemp("fragments"), functions)


def thread_and_register(fragment):
    """Return the numbers of every thread and register, arrays of THREADS x size."""
    return np.indices((THREADS, fragment.size))


def random_fragments(fragment, dtype):
    """Return registers of all threads, and the tile that they hold."""
    registers = random_elements(BY_NAME[dtype].numpy, (THREADS, fragment.size))
    thread, register = thread_and_register(fragment)
    inside = fragment.in_bounds(thread, register)
    tile = np.zeros((fragment.rows, fragment.cols), registers.dtype)
    tile[fragment.row(thread, register)[inside], fragment.col(thread, register)[inside]] = registers[inside]
    return registers, tile


def test_digits_are_sums_of_strided_digits():
    digits = Digits(((1, 4, 2), (4, 8, 100), (32, 2, 1000)))
    assert digits(0) == 0
    assert digits(3 + 4 * 5 + 32 * 3) == 3 * 2 + 5 * 100 + 1 * 1000  # 3 % 2 = 1
    assert Digits(())(7) == 0


def test_mma_accumulators_are_where_ptx_says():
    # PTX ISA, mma.m16n8k16: row = lane / 4 + 8 (i / 2), column = 2 (lane % 4) + i % 2
    fragment = mma(64, 16, 2, 2)
    assert (fragment.row(13, 3), fragment.col(13, 3)) == (3 + 8, 3)
    assert (fragment.row(32 + 13, 4 + 3), fragment.col(32 + 13, 8 + 3)) == (32 + 16 + 3 + 8, 8 + 3)


@CASE
def test_every_element_has_exactly_one_register(case):
    fragment = CASES[case][0]
    thread, register = thread_and_register(fragment)
    inside = fragment.in_bounds(thread, register)
    count = np.zeros((fragment.rows, fragment.cols), int)
    np.add.at(count, (fragment.row(thread, register)[inside], fragment.col(thread, register)[inside]), 1)
    assert (count == 1).all()


@CASE
def test_cpp_agrees(library, case):
    fragment = CASES[case][0]
    cells = np.full((THREADS, fragment.size, 3), -1, np.intc)
    getattr(library, f"cells{case}")(cells.ctypes.data_as(ctypes.c_void_p))
    at = thread_and_register(fragment)
    assert np.array_equal(cells, np.stack([fragment.row(*at), fragment.col(*at), fragment.in_bounds(*at)], axis=-1))


@CASE
def test_cpp_finds_pairs_of_columns(library, case):
    fragment = CASES[case][0]
    row, col = fragment.row(*thread_and_register(fragment)), fragment.col(*thread_and_register(fragment))
    first, second = slice(0, fragment.size // 2 * 2, 2), slice(1, None, 2)
    pairs = (row[:, first] == row[:, second]) & (col[:, first] + 1 == col[:, second]) & (col[:, first] % 2 == 0)
    paired = ctypes.c_int(-1)
    getattr(library, f"paired{case}")(ctypes.byref(paired))
    assert paired.value == (fragment.size % 2 == 0 and pairs.all())


@CASE
@pytest.mark.parametrize("name", WRITABLE_STRIDES)
def test_store_writes_the_part_that_tile_and_array_share(library, case, name):
    fragment, dtype, to, _ = CASES[case]
    array_dtype = BY_NAME[to].numpy
    registers, tile = random_fragments(fragment, dtype)
    for shape in shapes(fragment.rows, fragment.cols):
        for shift in (0, array_dtype.alignment):
            memory, view = guarded_array(array_dtype, shape, strides(array_dtype.itemsize, *shape)[name], shift)
            expected = memory.copy()
            part = view(expected)[: fragment.rows, : fragment.cols]
            part[...] = tile[: part.shape[0], : part.shape[1]].astype(array_dtype)
            call_with_array(getattr(library, f"store{case}"), registers, view(memory))
            assert np.array_equal(memory, expected)


@CASE
def test_store_to_a_tile_writes_its_elements_only(library, case):
    fragment, dtype, _, layout = CASES[case]
    registers, tile = random_fragments(fragment, dtype)
    smem = random_bytes(layout.size_bytes)
    expected = smem.copy()
    rows, cols = min(fragment.rows, layout.rows), min(fragment.cols, layout.cols)
    expected.view(layout.dtype.numpy)[offsets(layout)[:rows, :cols]] = tile[:rows, :cols]
    pointers = (ctypes.c_void_p(x.ctypes.data) for x in (registers, smem))
    getattr(library, f"store_to_tile{case}")(*pointers)
    assert np.array_equal(smem, expected)
