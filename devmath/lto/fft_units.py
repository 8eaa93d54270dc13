"""CUDA C++ text of one FFT unit: an #include, the plan, and one extern "C" function."""

from .fft_plan import FFTPlan
from .fft_source import sizes_text, struct_text

_EXCHANGE = "void* smem_exchange, int exchange_in_use"
# Row `transform` of an array of two dimensions, after its pointer.
_ROW = (
    "long long transform, long long rows, long long columns, long long row_stride_bytes, long long column_stride_bytes"
)


def register_form(plan: FFTPlan, inverse: bool, symbol: str) -> str:
    """Source of the transform of registers: ``void symbol(void* rmem, void* smem_exchange, int exchange_in_use)``.

    `exchange_in_use` is 0 where nothing can still be reading the exchange buffer; then no barrier comes first.
    """
    return _unit("block_fft", struct_text(plan), symbol, f"void* rmem, {_EXCHANGE}", _transform("registers", inverse))


def tile_form(plan: FFTPlan, inverse: bool, symbol: str) -> str:
    """Source of the transform of a tile: ``void symbol(void* smem_tile, int ld, void* smem_exchange, int in_use)``.

    `ld` is the distance of the rows in elements.
    """
    parameters = f"void* smem_tile, int ld, {_EXCHANGE}"
    return _unit("block_fft", struct_text(plan), symbol, parameters, _transform("tile", inverse))


def load_registers(plan: FFTPlan, symbol: str) -> str:
    """Source of ``void symbol(void* rmem, const void* gmem, transform, rows, columns, strides)``, numbers 64-bit."""
    return _unit("memory", sizes_text(plan), symbol, f"void* rmem, const void* gmem, {_ROW}", "load_registers<Plan>")


def store_registers(plan: FFTPlan, symbol: str) -> str:
    """Source of ``void symbol(const void* rmem, void* gmem, transform, rows, columns, strides)``, numbers 64-bit."""
    return _unit("memory", sizes_text(plan), symbol, f"const void* rmem, void* gmem, {_ROW}", "store_registers<Plan>")


def _transform(form: str, inverse: bool) -> str:
    return f"transform_{form}<Plan, {'true' if inverse else 'false'}>"


def _unit(header: str, plan_text: str, symbol: str, parameters: str, function: str) -> str:
    """Define `symbol` as a call of `function` with its own parameters."""
    arguments = ", ".join(parameter.split()[-1] for parameter in parameters.split(","))
    return f"""\
#include <devmath/fft/{header}.cuh>

{plan_text}
extern "C" __device__ void {symbol}(
    {parameters}) {{
  devmath::fft::{function}(
      {arguments});
}}
"""
