"""Arrays of the user's own as operands: where they lie, and whether they are large enough.

Numba's array type says neither. Both stand in the LLVM IR of the function being lowered: the array's descriptor was put
together, a few instructions ago, from a shared-memory global or a stack slot and from constant extents. What cannot be
seen there, such as an array that a device function got as argument, is checked by the kernel as it runs.
"""

from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba.cuda import cgutils, types
from numba.cuda.cudadrv.nvvm import ADDRSPACE_SHARED
from numba.cuda.np.arrayobj import make_array
from numba.cuda.nvvmutils import declare_string, declare_vprint

from .. import rules
from .linking import in_kernel


@dataclass(frozen=True)
class PlainArray:
    """A plain array at run time, and what is known of it now.

    Parameters
    ----------
    data : ir.Value
        Address of the first element.
    shape : tuple of ir.Value
        Extents, 64-bit; constants where they are known.
    space : {"shared", "local", "global", None}
        Where it lies; None if that cannot be seen.
    """

    data: ir.Value
    shape: tuple[ir.Value, ...]
    space: str | None


def inspect(context: Any, builder: ir.IRBuilder, ty: types.Array, value: ir.Value) -> PlainArray:
    """Take an array apart, following its members to where they were set."""
    function = builder.function
    array = make_array(ty)(context, builder, value)
    positions = context.data_model_manager[ty]
    data, extents = positions.get_field_position("data"), positions.get_field_position("shape")
    shape = [_resolve(function, value, (extents, i)) for i in range(ty.ndim)]
    at_run_time = cgutils.unpack_tuple(builder, array.shape)
    return PlainArray(
        array.data,
        tuple(now if isinstance(now, ir.Constant) else then for now, then in zip(shape, at_run_time, strict=True)),
        _space(_resolve(function, value, (data,))),
    )


def _resolve(function: ir.Function, value: ir.Value, path: tuple[int, ...] = ()) -> ir.Value:
    """Follow the member at `path` of a value through casts, structs and variables that are set once."""
    while True:
        if isinstance(value, ir.InsertValue):
            inserted_at = tuple(value.indices)
            if path[: len(inserted_at)] == inserted_at:
                value, path = value.operands[1], path[len(inserted_at) :]
            else:
                value = value.operands[0]
        elif isinstance(value, ir.ExtractValue):
            value, path = value.operands[0], (*value.indices, *path)
        elif isinstance(value, ir.LoadInstr):
            slot, place = _slot(value.operands[0])
            stored = _stored(function, slot, (*place, *path))
            if stored is None:
                return value
            value, path = stored
        elif isinstance(value, ir.CastInstr):
            value = value.operands[0]
        elif isinstance(value, ir.GEPInstr):
            value = value.pointer
        else:
            return value


def _slot(address: ir.Value) -> tuple[ir.Value, tuple[int, ...]]:
    """The variable that an address lies in, and the path of the member that it is the address of."""
    if isinstance(address, ir.GEPInstr) and all(isinstance(index, ir.Constant) for index in address.indices):
        return address.pointer, tuple(index.constant for index in address.indices[1:])
    return address, ()


def _stored(function: ir.Function, slot: ir.Value, path: tuple[int, ...]) -> tuple[ir.Value, tuple[int, ...]] | None:
    """The one value stored over the member at `path` of a variable, and the rest of the path; None if not just one.

    Numba clears a variable before it sets it: that store does not count.
    """
    found = {}
    for instruction in (instruction for block in function.blocks for instruction in block.instructions):
        if not isinstance(instruction, ir.StoreInstr):
            continue
        value, (target, place) = instruction.operands[0], _slot(instruction.operands[1])
        is_clearing = isinstance(value, ir.Constant) and value.constant is None
        if target is slot and path[: len(place)] == place and not is_clearing:
            found[id(value)] = value, path[len(place) :]
    return next(iter(found.values())) if len(found) == 1 else None


def _space(root: ir.Value) -> str | None:
    if isinstance(root, ir.GlobalVariable):
        return "shared" if root.type.addrspace == ADDRSPACE_SHARED else "global"
    if isinstance(root, ir.AllocaInstr):
        return "local"
    # What a kernel gets as argument is global; a device function may get anything.
    return "global" if isinstance(root, ir.Argument) and in_kernel() else None


def require(
    context: Any, builder: ir.IRBuilder, operand: str, array: PlainArray, space: str, extents: tuple[int, ...]
) -> None:
    """Refuse an array outside `space`, or smaller than `extents`: now where that is known, else as the kernel runs."""
    known = tuple(extent.constant if isinstance(extent, ir.Constant) else None for extent in array.shape)
    rule = rules.plain_array(operand, space, extents, array.space, known)
    for have, want, is_known in zip(array.shape, extents, known, strict=True):
        if is_known is None:
            too_small = builder.icmp_signed("<", have, have.type(want))
            with builder.if_then(too_small, likely=False):
                _stop(builder, f"{rule}\n")


def _stop(builder: ir.IRBuilder, message: str) -> None:
    """Print a message and end the kernel with an error."""
    text = builder.bitcast(declare_string(builder, message), ir.IntType(8).as_pointer())
    builder.call(declare_vprint(builder.module), [text, ir.Constant(ir.IntType(8).as_pointer(), None)])
    builder.call(ir.InlineAsm(ir.FunctionType(ir.VoidType(), []), "trap;", "", side_effect=True), [])
