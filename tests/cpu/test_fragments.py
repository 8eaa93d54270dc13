"""Fragments: which thread holds what, in Python and in C++, and the copies of fragments."""

import ctypes

import numpy as np
import pytest
from tile_block import (
    ARGUMENTS,
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
from devmath.fragments import Digits, FragmentMap
from devmath.layouts import TileLayout
from devmath.lto import gemm_fma, gemm_mma_sync
from devmath.lto.tile_source import element_text, fragment_text, layout_text
from tests.problems import problem


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


def fragment_of(variant, m, n, dtype, threads, b_order="row"):
    """Return the fragment of a product as a variant plans it."""
    return variant.plan(problem(m, n, 16, dtype, ("row", b_order, "row"), threads)).fragment


def tile(dtype, rows, cols, order, ld, swizzle=0):
    """Return the layout of a tile."""
    return TileLayout(BY_NAME[dtype], rows, cols, order, ld, rows if order == "row" else cols, swizzle)


THREADS = 64
# (fragment, its dtype, the dtype of the arrays and the tile that it is copied to, lengths of runs along rows, columns)
CASES = [
    (mma(64, 16, 2, 2), "float32", "float32", tile("float32", 64, 16, "row", 16, 4), (4, 4)),
    (mma(60, 13, 2, 2), "float32", "float16", tile("float16", 60, 13, "col", 72), (8, 8)),
    (mma(32, 24, 1, 3), "float32", "bfloat16", tile("bfloat16", 32, 24, "row", 64, 8), (8, 8)),
    (mma(32, 40, 1, 5), "float32", "float16", tile("float16", 32, 40, "row", 48), (8, 8)),
    (mma(32, 8, 1, 1), "float64", "float64", tile("float64", 20, 30, "row", 30), (2, 2)),
    (mma(64, 64, 2, 8), "float32", "float16", tile("float32", 64, 64, "col", 64, 8), (8, 8)),
    (strided(16, 16, 2, 2), "complex64", "complex64", tile("complex64", 16, 16, "row", 16, 8), (2, 2)),
    (strided(21, 10, 3, 2), "complex128", "complex64", tile("complex64", 24, 16, "col", 24), (2, 2)),
    (strided(5, 8, 1, 1), "float16", "float64", tile("float64", 5, 8, "row", 8), (1, 1)),
    (strided(16, 16, 2, 2), "float32", "float32", tile("bfloat16", 16, 16, "row", 16), (4, 4)),
    (fragment_of(gemm_fma, 32, 48, "float32", 64), "float32", "float32", tile("float32", 32, 48, "row", 52), (4, 4)),
    (fragment_of(gemm_fma, 32, 48, "float32", 64), "float32", "float16", tile("float16", 32, 48, "col", 40), (8, 4)),
    (fragment_of(gemm_fma, 33, 20, "float64", 64), "float64", "float64", tile("float64", 33, 20, "row", 22), (2, 2)),
    (
        fragment_of(gemm_fma, 24, 40, "float32", 64, "col"),
        "float32",
        "bfloat16",
        tile("float64", 24, 40, "col", 24),
        (4, 4),
    ),
    (
        fragment_of(gemm_mma_sync, 64, 96, "float16", 64),
        "float32",
        "float16",
        tile("float16", 64, 96, "row", 96, 4),
        (8, 8),
    ),
    (
        fragment_of(gemm_mma_sync, 64, 32, "int8", 64),
        "int32",
        "int32",
        tile("int32", 64, 32, "row", 40),
        (4, 4),
    ),
    (
        fragment_of(gemm_mma_sync, 32, 64, "float8_e4m3fn", 64),
        "float32",
        "float8_e4m3fn",
        tile("float8_e4m3fn", 32, 64, "row", 64, 4),
        (8, 8),
    ),
    (
        fragment_of(gemm_mma_sync, 50, 48, "float16", 64),
        "float32",
        "float32",
        tile("float32", 50, 48, "row", 56),
        (4, 4),
    ),
]
IDS = [f"{i}-{f.rows}x{f.cols}-{f.size}-{dtype}-{to}" for i, (f, dtype, to, _, _) in enumerate(CASES)]
CASE = pytest.mark.parametrize("case", range(len(CASES)), ids=IDS)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Functions cells0, store0, store_to_tile0, cells1, ... for all cases."""
    functions = {}
    for i, (fragment, dtype, to, layout, _) in enumerate(CASES):
        text = fragment_text(fragment)
        block = f"{text}, {THREADS}, {element_text(BY_NAME[dtype])}"
        functions[f"cells{i}(int* cells)"] = f"write_cells<{text}>({THREADS}, cells)"
        for axis, rows in (("rows", text), ("columns", f"typename {text}::Transposed")):
            functions[f"runs{i}_{axis}(int* runs)"] = f"write_runs<{rows}, {element_text(BY_NAME[to])}>(runs)"
        functions[f"store{i}(const void* fragments, void* array, {PARAMETERS})"] = (
            f"store_fragment_by_block<{block}, {element_text(BY_NAME[to])}>(fragments, array, {ARGUMENTS})"
        )
        functions[f"load{i}(void* fragments, const void* array, {PARAMETERS})"] = (
            f"load_fragment_by_block<{block}, {element_text(BY_NAME[to])}>(fragments, array, {ARGUMENTS})"
        )
        functions[f"store_to_tile{i}(const void* fragments, void* tile)"] = (
            f"store_fragment_to_tile_by_block<{block}, {layout_text(layout)}>(fragments, tile)"
        )
        functions[f"load_from_tile{i}(void* fragments, const void* tile)"] = (
            f"load_fragment_from_tile_by_block<{block}, {layout_text(layout)}>(fragments, tile)"
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
@pytest.mark.parametrize("axis", [0, 1], ids=["rows", "columns"])
def test_cpp_finds_the_longest_runs(library, case, axis):
    """16 bytes, where there are lanes and registers for so much."""
    runs = (ctypes.c_int * 2)()
    getattr(library, f"runs{case}_{('rows', 'columns')[axis]}")(runs)
    own, lanes = runs
    assert own * lanes == CASES[case][4][axis]


@CASE
@pytest.mark.parametrize("name", WRITABLE_STRIDES)
def test_store_writes_the_part_that_tile_and_array_share(library, case, name):
    fragment, dtype, to, _, _ = CASES[case]
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
    fragment, dtype, _, layout, _ = CASES[case]
    registers, tile = random_fragments(fragment, dtype)
    smem = random_bytes(layout.size_bytes)
    expected = smem.copy()
    rows, cols = min(fragment.rows, layout.rows), min(fragment.cols, layout.cols)
    expected.view(layout.dtype.numpy)[offsets(layout)[:rows, :cols]] = tile[:rows, :cols]
    pointers = (ctypes.c_void_p(x.ctypes.data) for x in (registers, smem))
    getattr(library, f"store_to_tile{case}")(*pointers)
    assert np.array_equal(smem, expected)


@CASE
@pytest.mark.parametrize("name", STRIDES)
def test_load_fills_every_register_with_an_element_or_zero(library, case, name):
    fragment, dtype, to, _, _ = CASES[case]
    array_dtype, at = BY_NAME[to].numpy, thread_and_register(fragment)
    row, col = fragment.row(*at), fragment.col(*at)
    for shape in shapes(fragment.rows, fragment.cols):
        for shift in (0, array_dtype.alignment):
            memory, view = guarded_array(array_dtype, shape, strides(array_dtype.itemsize, *shape)[name], shift)
            view(memory)[...] = random_elements(array_dtype, shape)
            registers = random_elements(BY_NAME[dtype].numpy, (THREADS, fragment.size))
            call_with_array(getattr(library, f"load{case}"), registers, view(memory))
            exists = fragment.in_bounds(*at) & (row < shape[0]) & (col < shape[1])
            expected = np.zeros_like(registers)
            expected[exists] = view(memory)[row[exists], col[exists]].astype(registers.dtype)
            assert np.array_equal(registers, expected)


@CASE
def test_load_from_a_tile_fills_every_register_with_an_element_or_zero(library, case):
    fragment, dtype, _, layout, _ = CASES[case]
    at = thread_and_register(fragment)
    row, col = fragment.row(*at), fragment.col(*at)
    elements = random_elements(layout.dtype.numpy, (layout.rows, layout.cols))
    smem = random_bytes(layout.size_bytes)
    smem.view(layout.dtype.numpy)[offsets(layout)] = elements
    registers = random_elements(BY_NAME[dtype].numpy, (THREADS, fragment.size))
    getattr(library, f"load_from_tile{case}")(*(ctypes.c_void_p(x.ctypes.data) for x in (registers, smem)))
    exists = fragment.in_bounds(*at) & (row < layout.rows) & (col < layout.cols)
    expected = np.zeros_like(registers)
    expected[exists] = elements[row[exists], col[exists]].astype(registers.dtype)
    assert np.array_equal(registers, expected)


@CASE
def test_slots_number_the_rows_of_a_thread(case):
    fragment = CASES[case][0]
    for digits in (fragment.row_of_register, fragment.transposed.row_of_register):
        slots, holders = digits.slots(np.arange(fragment.size)), digits.holder(np.arange(digits.count))
        assert set(slots) == set(range(digits.count))
        assert np.array_equal(digits.slots(holders), np.arange(digits.count))
        assert np.array_equal(digits(holders)[slots], digits(np.arange(fragment.size)))
