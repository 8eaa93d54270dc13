"""Calls of our device functions: the target of the compilation in flight, the LTO-IR, the call itself."""

import functools
from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba import cuda
from numba.cuda import cgutils
from numba.cuda.core.targetconfig import ConfigStack

from ...lto.arch import arch_name
from ...lto.compile import compile_ltoir
from ...lto.unit import Unit
from .launch import prepare_module

BYTE_POINTER = ir.IntType(8).as_pointer()


def target_arch() -> str:
    """Architecture that is being compiled for; never that of the current device, so that none is needed."""
    return arch_name(ConfigStack.top_or_none().compute_capability)


def in_kernel() -> bool:
    """Whether a kernel is being compiled, not a device function. Numba asks for LTO for kernels alone."""
    return bool(ConfigStack.top_or_none().lto)


@functools.cache
def _linkable(unit: Unit, arch: str) -> cuda.LTOIR:
    """One object a unit and target: Numba keeps linking files in a set that compares by identity."""
    return cuda.LTOIR(compile_ltoir(unit, arch), name=unit.symbol, setup_callback=prepare_module)


def call_unit(context: Any, builder: ir.IRBuilder, unit: Unit, args: Sequence[ir.Value]) -> None:
    """Call the function that `unit` defines, C ABI, and have its LTO-IR linked into the kernel.

    Every pointer is passed as ``i8*``: call sites that disagreed on the pointee would not share one declaration.
    """
    values = [byte_pointer(builder, arg) if isinstance(arg.type, ir.PointerType) else arg for arg in args]
    function_type = ir.FunctionType(ir.VoidType(), [value.type for value in values])
    builder.call(cgutils.get_or_insert_function(builder.module, function_type, unit.symbol), values)
    context.active_code_library.add_linking_file(_linkable(unit, target_arch()))


def byte_pointer(builder: ir.IRBuilder, pointer: ir.Value) -> ir.Value:
    """`pointer` as a generic ``i8*``."""
    if pointer.type.addrspace:
        pointer = builder.addrspacecast(pointer, ir.PointerType(pointer.type.pointee))
    return builder.bitcast(pointer, BYTE_POINTER)
