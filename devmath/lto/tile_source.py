"""C++ source that moves tiles and fragments: a header, and one wrapper that names the template's arguments."""

from ..dtypes import DType
from ..fragments import Digits, FragmentMap
from ..layouts import TileLayout, TilePerProduct

# An array of two dimensions, after its pointer.
_STRIDED = "long long rows, long long columns, long long row_stride_bytes, long long column_stride_bytes"

# Shared memory of a block's, and whether threads may still read it.
_SCRATCH = "void* smem, int smem_in_use"


def element_text(dtype: DType) -> str:
    """C++ name of an element type, seen from outside namespace ``devmath``."""
    return dtype.cpp if dtype.cpp in ("float", "double", "int") else f"devmath::{dtype.cpp}"


def layout_text(layout: TileLayout) -> str:
    """C++ type of a shared-memory tile."""
    return (
        f"devmath::TileLayout<{element_text(layout.dtype)}, {layout.rows}, {layout.cols}, {_is_row(layout.order)}, "
        f"{layout.ld}, {layout.lines_allocated}, {layout.swizzle}>"
    )


def plain_layout_text(dtype: DType, rows: int, cols: int, order: str) -> str:
    """C++ type of a tile in an array of the user's own, its leading dimension known at run time."""
    return f"devmath::PlainLayout<{element_text(dtype)}, {rows}, {cols}, {_is_row(order)}>"


def fragment_text(fragment: FragmentMap) -> str:
    """C++ type of a map from (thread, register) to an element of a tile."""
    digits = (fragment.row_of_thread, fragment.row_of_register, fragment.col_of_thread, fragment.col_of_register)
    arguments = [str(fragment.rows), str(fragment.cols), str(fragment.size), *map(_digits_text, digits)]
    return f"devmath::FragmentMap<{', '.join(arguments)}>"


def load_tile(layout: TileLayout, threads: int, symbol: str) -> str:
    """Source of ``symbol(tile, array, ...)``: a block of `threads` fills a tile from an array of the same dtype."""
    function = f"load_tile<{layout_text(layout)}, {threads}>"
    return _unit("tile_copy", symbol, f"void* tile, const void* array, {_STRIDED}", function)


def store_tile(layout: TileLayout, threads: int, array_dtype: DType, symbol: str) -> str:
    """Source of ``symbol(tile, array, ...)``: a block of `threads` writes a tile to an array of `array_dtype`."""
    function = f"store_tile<{layout_text(layout)}, {threads}, {element_text(array_dtype)}>"
    return _unit("tile_copy", symbol, f"const void* tile, void* array, {_STRIDED}", function)


def load_tile_of_product(layout: TileLayout, tiles: TilePerProduct, symbol: str) -> str:
    """Source of ``symbol(tile, array, ...)``: a warp fills the tiles of its products, each from its own array."""
    function = f"load_tile_by_warp<{layout_text(layout)}, {tiles.threads}, {tiles.stride_bytes}>"
    return _unit("warp_copy", symbol, f"void* tile, const void* array, {_STRIDED}", function)


def store_tile_of_product(layout: TileLayout, tiles: TilePerProduct, array_dtype: DType, symbol: str) -> str:
    """Source of ``symbol(tile, array, ...)``: a warp writes the tiles of its products, each to its own array."""
    numbers = f"{tiles.threads}, {tiles.stride_bytes}"
    function = f"store_tile_by_warp<{layout_text(layout)}, {numbers}, {element_text(array_dtype)}>"
    return _unit("warp_copy", symbol, f"const void* tile, void* array, {_STRIDED}", function)


def store_fragment(fragment: FragmentMap, dtype: DType, array_dtype: DType, symbol: str) -> str:
    """Source of ``symbol(fragment, array, ...)``: a thread writes its registers to an array of `array_dtype`."""
    function = f"store_fragment<{_fragment_and_types(fragment, dtype, array_dtype)}>"
    return _unit("fragment_copy", symbol, f"const void* fragment, void* array, {_STRIDED}", function)


def load_fragment(fragment: FragmentMap, dtype: DType, array_dtype: DType, symbol: str) -> str:
    """Source of ``symbol(fragment, array, ...)``: a thread fills its registers from an array of `array_dtype`."""
    function = f"load_fragment<{_fragment_and_types(fragment, dtype, array_dtype)}>"
    return _unit("fragment_copy", symbol, f"void* fragment, const void* array, {_STRIDED}", function)


def store_fragment_to_tile(fragment: FragmentMap, dtype: DType, layout: TileLayout, symbol: str) -> str:
    """Source of ``symbol(fragment, tile)``: a thread writes its registers to a shared-memory tile."""
    function = f"store_fragment_to_tile<{fragment_text(fragment)}, {element_text(dtype)}, {layout_text(layout)}>"
    return _unit("fragment_copy", symbol, "const void* fragment, void* tile", function)


def load_fragment_from_tile(fragment: FragmentMap, dtype: DType, layout: TileLayout, symbol: str) -> str:
    """Source of ``symbol(fragment, tile)``: a thread fills its registers from a shared-memory tile."""
    function = f"load_fragment_from_tile<{fragment_text(fragment)}, {element_text(dtype)}, {layout_text(layout)}>"
    return _unit("fragment_copy", symbol, "void* fragment, const void* tile", function)


def reduce_rows(operation: str, fragment: FragmentMap, dtype: DType, value: DType, symbol: str) -> str:
    """Source of ``symbol(fragment, vector, smem, smem_in_use)``: a block reduces the rows of a fragment to `value`.

    `operation` is "max", "min" or "sum"; `smem` holds ``fragment.warps_of_row * fragment.rows_reached`` values where
    several warps share a row.
    """
    function = f"reduce_rows<devmath::{operation.capitalize()}, {_fragment_and_types(fragment, dtype, value)}>"
    return _unit("fragment_reduce", symbol, f"const void* fragment, void* vector, {_SCRATCH}", function)


def redistribute_rows(source: FragmentMap, target: FragmentMap, value: DType, symbol: str) -> str:
    """Source of ``symbol(source, target, smem, smem_in_use)``: a block deals out a value a row anew."""
    function = f"redistribute_rows<{fragment_text(source)}, {fragment_text(target)}, {element_text(value)}>"
    return _unit("fragment_reduce", symbol, f"const void* source, void* target, {_SCRATCH}", function)


def convert_registers(size: int, source: DType, target: DType, symbol: str) -> str:
    """Source of ``symbol(source, target)``: `size` registers of a thread, converted."""
    function = f"convert_registers<{size}, {element_text(source)}, {element_text(target)}>"
    return _unit("fragment_reduce", symbol, "const void* source, void* target", function)


def _fragment_and_types(fragment: FragmentMap, *dtypes: DType) -> str:
    return ", ".join((fragment_text(fragment), *map(element_text, dtypes)))


def convert_element(from_dtype: DType, to_dtype: DType, symbol: str) -> str:
    """Source of ``symbol(source, destination)``: one number of another type."""
    function = f"convert_element<{element_text(from_dtype)}, {element_text(to_dtype)}>"
    return _unit("scalar", symbol, "const void* source, void* destination", function)


def _unit(header: str, symbol: str, parameters: str, function: str) -> str:
    """Define `symbol` as a call of `function` with its own parameters."""
    arguments = ", ".join(parameter.split()[-1] for parameter in parameters.split(","))
    return f"""\
#include <devmath/{header}.cuh>

extern "C" __device__ void {symbol}(
    {parameters}) {{
  devmath::{function}(
      {arguments});
}}
"""


def _is_row(order: str) -> str:
    return "true" if order == "row" else "false"


def _digits_text(digits: Digits) -> str:
    return f"devmath::Digits<{', '.join(str(number) for term in digits.terms for number in term)}>"
