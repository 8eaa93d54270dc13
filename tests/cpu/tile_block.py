"""Compiles calls of tile_block.hpp, and places arrays in memory for them."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
INCLUDE = HERE.parents[1] / "devmath" / "lto" / "include"
GUARD_BYTES = 64
RNG = np.random.default_rng()

# The C++ parameters that describe an array beside its pointer.
PARAMETERS = "i64 rows, i64 columns, i64 row_stride_bytes, i64 column_stride_bytes"
ARGUMENTS = "rows, columns, row_stride_bytes, column_stride_bytes"


def strides(size, rows, cols):
    """Return the strides in bytes of arrays of all kinds, by name, for elements of `size` bytes."""
    row, column = ((length * size // 16 + 2) * 16 for length in (cols, rows))  # each begins at a multiple of 16
    return {
        "C": (cols * size, size),
        "C padded": (row, size),
        "C upwards": (-row, size),
        "C leftwards": (row, -size),
        "Fortran": (size, rows * size),
        "Fortran padded": (size, column),
        "Fortran leftwards": (size, -column),
        "every other": (2 * row, 2 * size),
        "one row": (0, size),
        "one column": (size, 0),
        "one element": (0, 0),
    }


STRIDES = tuple(strides(1, 1, 1))
WRITABLE_STRIDES = STRIDES[:-3]  # each element has a place of its own


def shapes(rows, cols):
    """Return array extents at, above and below a tile's."""
    return [(rows, cols), (rows + 3, cols + 8), (rows - 1, cols), (rows, cols - 1), (rows // 2 + 1, cols // 3 + 1)]


def build_library(folder, functions):
    """Compile C++ functions, ``{"name(parameters)": "template<arguments>(names)"}``, to one shared library."""
    lines = ['#include "tile_block.hpp"', "using namespace devmath;"]
    lines += [f'extern "C" void {declaration} {{ {call}; }}' for declaration, call in functions.items()]
    source, output = folder / "functions.cpp", folder / "functions.so"
    source.write_text("\n".join(lines))
    flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-shared", "-fPIC"]
    flags += ["-fsanitize=alignment", "-fno-sanitize-recover"]  # a misaligned access ends the process, as on a GPU
    subprocess.run(["g++", *flags, f"-I{INCLUDE}", f"-I{HERE}", source, "-o", output], check=True)
    return ctypes.CDLL(str(output))


def call_with_array(function, operand, array):
    """Call a copy between `operand` and an array of two dimensions."""
    numbers = (*array.shape, *array.strides)
    function(ctypes.c_void_p(operand.ctypes.data), ctypes.c_void_p(array.ctypes.data), *map(ctypes.c_longlong, numbers))


def random_bytes(size, shift=0):
    """Return `size` random bytes that begin `shift` bytes after a multiple of 16."""
    memory = RNG.integers(0, 256, size + 32, np.uint8)
    first = -memory.ctypes.data % 16 + shift
    return memory[first : first + size]


def random_elements(dtype, shape):
    """Return random elements of magnitudes between 0.5 and 3."""
    real, imaginary = (RNG.uniform(0.5, 2, shape) * RNG.choice([-1, 1], shape) for _ in range(2))
    return (real + 1j * imaginary if dtype.kind == "c" else real).astype(dtype)


def guarded_array(dtype, shape, strides, shift=0):
    """Return random bytes with room for an array of any strides, and the function from such bytes to the array there.

    The lowest element lies `shift` bytes past a multiple of 16.
    """
    spans = [stride * (extent - 1) if all(shape) else 0 for extent, stride in zip(shape, strides, strict=True)]
    below, above = -sum(min(span, 0) for span in spans), sum(max(span, 0) for span in spans)
    memory = random_bytes(below + above + dtype.itemsize + 2 * GUARD_BYTES, shift)
    return memory, lambda buffer: np.ndarray(shape, dtype, buffer, GUARD_BYTES + below, strides)


def offsets(layout):
    """Return the offset of every element of the tile."""
    return layout.offset(*np.indices((layout.rows, layout.cols)))
