"""Products by lanes of a warp: who holds what, where tiles lie, and the numbers, by the headers as plain C++."""

import ctypes
import subprocess
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from holders import holders
from memory_banks import conflicts

import devmath
from devmath.lto import gemm_source
from devmath.lto.tile_source import element_text, fragment_text, layout_text

HERE = Path(__file__).parent
INCLUDE = HERE.parents[1] / "devmath" / "lto" / "include"
DTYPES = ("float32", "float64", "complex64", "complex128")
CUBES = (1, 2, 3, 4, 5, 8, 13, 16, 31, 32)
SHAPES = ((8, 16, 8), (16, 16, 8), (32, 32, 64), (1, 32, 3), (24, 3, 7), *((n, n, n) for n in CUBES))
ORDERS = tuple(product(("row", "col"), repeat=2))
BOUNDS = {"float32": 1e-6, "complex64": 1e-6, "float64": 1e-14, "complex128": 1e-14}


def small(shape, dtype, execution="warp", a_order="row", b_order="row", **fields):
    return devmath.Gemm(*shape, dtype, execution=execution, a_order=a_order, b_order=b_order, **fields)


@pytest.mark.parametrize("orders", ORDERS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_element_of_c_is_held_once_by_each_group(shape, dtype, orders):
    mm = small(shape, dtype, a_order=orders[0], b_order=orders[1])
    assert (holders(mm.plan) == 1).all()
    # The map takes a rank in the block: that of the group follows from it.
    ranks, registers = np.arange(mm.threads)[:, None], np.arange(mm.plan.fragment.size)
    for of in (mm.plan.fragment.row, mm.plan.fragment.col):
        assert np.array_equal(of(ranks, registers), of(ranks % mm.threads_per_gemm, registers))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_a_thread_holds_all_of_c(n, dtype):
    mm = small((n, n, n), dtype, "thread")
    assert mm.threads_per_gemm == 1
    assert (holders(mm.plan) == 1).all()


@pytest.mark.parametrize(
    ("shape", "dtype", "threads"),
    [
        ((1, 1, 1), "float32", 2),
        ((4, 4, 4), "float32", 2),
        ((8, 8, 8), "float32", 4),
        ((8, 16, 8), "float64", 8),
        ((13, 13, 13), "complex64", 16),
        ((16, 16, 16), "float32", 16),
        ((32, 32, 64), "float32", 32),
        ((8, 8, 8), "float16", 32),
        ((8, 8, 96), "float32", 4),
        ((8, 8, 256), "float32", 16),  # or the operands of eight products would take 128 KB
        ((4, 4, 4096), "float32", 32),
    ],
)
def test_lanes_have_about_sixteen_outputs_and_tensor_cores_a_warp(shape, dtype, threads):
    mm = small(shape, dtype)
    assert mm.threads_per_gemm == threads
    assert mm.threads == threads * mm.gemms_per_block
    assert mm.threads % 32 == 0


@pytest.mark.parametrize("orders", ORDERS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_products_of_a_warp_read_different_banks(shape, dtype, orders):
    mm = small(shape, dtype, a_order=orders[0], b_order=orders[1])
    fragment, lanes = mm.plan.fragment, np.arange(32)
    rows, cols = fragment.row(lanes, 0), fragment.col(lanes, 0)
    rows, cols = np.where(rows < mm.m, rows, 0), np.where(cols < mm.n, cols, 0)
    for operand, offsets in ((mm.a, mm.a.layout.offset(rows, 0)), (mm.b, mm.b.layout.offset(0, cols))):
        tiles = operand.per_product_on(None)
        assert tiles.stride_bytes >= operand.layout.size_bytes
        assert tiles.stride_bytes % 16 == 0
        first_bytes = lanes // mm.threads_per_gemm * tiles.stride_bytes + offsets * operand.layout.dtype.itemsize
        assert conflicts(first_bytes // 16 * 16, 16) == 0


def test_blocks_are_small_where_tiles_are_large():
    for shape, dtype in product(SHAPES, DTYPES):
        mm = small(shape, dtype)
        one_warp = mm.threads == 32
        assert one_warp or mm.a.size_bytes + mm.b.size_bytes <= 96 * 1024
        assert mm.gemms_per_block * (mm.m + mm.n) * mm.k * mm.dtype.itemsize <= 48 * 1024 or one_warp
    assert small((8, 8, 8), "float32").threads == 128


CASES = [
    *(small((n, n, n), dtype) for dtype in DTYPES for n in (4, 8)),
    *(small((n, n, n), dtype) for dtype in ("float32", "complex64") for n in (1, 5, 13)),
    *(small((8, 12, 20), dtype, a_order=a, b_order=b) for dtype in ("float32", "complex128") for a, b in ORDERS),
    *(small(shape, "float32") for shape in ((16, 16, 8), (3, 7, 2), (2, 9, 33), (31, 31, 31))),
    *(small((n, n, n), dtype, "thread") for dtype in ("float32", "complex64") for n in (3, 4)),
    *(small((4, 4, 8), "float64", "thread", a, b) for a, b in ORDERS[1:]),
    small((8, 8, 8), "float32", "thread"),
    small((8, 8, 8), "complex64", a_conj=True, b_conj=True),
    small((6, 6, 6), "float32", force_variant="fma"),
]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    source, output = folder / "cases.cpp", folder / "cases.so"
    source.write_text("\n".join(['#include "small_products.hpp"', *map(_text, range(len(CASES)))]))
    flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-shared", "-fPIC"]
    flags += ["-fsanitize=alignment", "-fno-sanitize-recover", "-fno-strict-aliasing"]
    subprocess.run(["g++", *flags, f"-I{INCLUDE}", f"-I{HERE}", source, "-o", output], check=True)
    return ctypes.CDLL(str(output))


def _text(i):
    mm = CASES[i]
    tiles = [
        f"devmath::WarpTiles<{layout_text(x.layout)}, {mm.threads_per_gemm}, {x.per_product_on(None).stride_bytes}>"
        for x in (mm.a, mm.b)
    ]
    arguments = [*tiles, fragment_text(mm.plan.fragment), element_text(mm.plan.accumulator)]
    return f"""
{gemm_source.register_form(mm.plan, ("tile", "tile"), f"unit{i}")}
extern "C" int can_be_packed{i}() {{ return {tiles[0]}::can_be_packed && {tiles[1]}::can_be_packed; }}
extern "C" void run{i}(int packed, int count, void* a, void* b, void* c, void* a_copy, void* b_copy, void* smem_a,
                       void* smem_b) {{
  const auto batch = [&](void* gmem) {{ return devmath::Batch{{(char*)gmem, count, packed != 0}}; }};
  devmath::multiply_batch<{", ".join(arguments)}>(
      unit{i}, batch(a), batch(b), batch(c), batch(a_copy), batch(b_copy), (char*)smem_a, (char*)smem_b);
}}
"""


def aligned(shape, dtype):
    """Uninitialised memory that begins at a multiple of 128 bytes."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.empty(size + 128, np.uint8)
    first = -memory.ctypes.data % 128
    return memory[first : first + size].view(dtype).reshape(shape)


def filled(like, value):
    memory = aligned(like.shape, like.dtype)
    memory[...] = value
    return memory


def batch_of(rng, operand, count, packed):
    """A random batch, and the array of its bytes: matrices by the lines of their tiles where it is packed."""
    values = rng.standard_normal((count, *operand.shape))
    if operand.dtype.kind == "c":
        values = values + 1j * rng.standard_normal(values.shape)
    by_column = packed and operand.layout.order == "col"
    lines = values.transpose(0, 2, 1) if by_column else values
    memory = aligned(lines.shape, operand.dtype)
    memory[...] = lines
    return (memory.transpose(0, 2, 1) if by_column else memory), memory


def can_be_packed(mm):
    """Whether tiles of both operands are few enough accesses to stand in the code one by one."""

    def accesses(operand):
        layout, itemsize = operand.layout, operand.dtype.itemsize
        bytes_each = itemsize if layout.line_length * itemsize % 16 else 16
        return layout.rows * layout.cols * itemsize // bytes_each / mm.threads_per_gemm

    return mm.threads_per_gemm < 32 and max(map(accesses, (mm.a, mm.b))) <= 64


@pytest.mark.parametrize("packed", [False, True], ids=["each", "packed"])
@pytest.mark.parametrize("case", range(len(CASES)), ids=[repr(mm) for mm in CASES])
def test_the_products_of_a_warp(library, case, packed):
    mm = CASES[case]
    products = 32 // mm.threads_per_gemm
    assert getattr(library, f"can_be_packed{case}")() == can_be_packed(mm)
    packed = packed and can_be_packed(mm)
    rng = np.random.default_rng()
    for count in (products,) if packed else {products, max(products - 1, 1), 1}:
        a, a_memory = batch_of(rng, mm.a, count, packed)
        b, b_memory = batch_of(rng, mm.b, count, packed)
        c = filled(np.empty((count, mm.m, mm.n), mm.c_dtype), np.nan)
        copies = [filled(memory, np.nan) for memory in (a_memory, b_memory)]
        tiles = [filled(np.empty(products * x.per_product_on(None).stride_bytes, np.uint8), 255) for x in (mm.a, mm.b)]
        pointers = (ctypes.c_void_p(x.ctypes.data) for x in (a_memory, b_memory, c, *copies, *tiles))
        getattr(library, f"run{case}")(int(packed), count, *pointers)
        want = (a.conj() if mm.a_conj else a) @ (b.conj() if mm.b_conj else b)
        assert np.linalg.norm(c - want) / np.linalg.norm(want) < BOUNDS[mm.dtype.name]
        assert np.array_equal(copies[0], a_memory)
        assert np.array_equal(copies[1], b_memory)
