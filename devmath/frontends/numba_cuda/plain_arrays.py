"""Arrays of the user's own: the parts that our functions take; as operands, where they lie and whether they are large
enough.

Numba's array type says neither. Both stand in the LLVM IR of the function being lowered: the array's descriptor was put
together, a few instructions ago, from a shared-memory global or a stack slot and from constant extents. What cannot be
seen there, such as an array that a device function got as argument, is checked by the kernel as it runs.
"""

import math
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba.cuda import cgutils, types
from numba.cuda.cudadrv.nvvm import ADDRSPACE_SHARED
from numba.cuda.np.arrayobj import make_array
from numba.cuda.nvvmutils import declare_string, declare_vprint

from ...layouts import TileLayout
from .. import plain_array_rules
from .linking import in_kernel

INT8, INT64 = ir.IntType(8), ir.IntType(64)


@dataclass(frozen=True)
class PlainArray:
    """A plain array at run time, and what is known of it now.

    Parameters
    ----------
    data : ir.Value
        Address of the first element.
    shape, strides : tuple of ir.Value
        Extents, and strides in bytes, 64-bit; constants where they are known.
    space : {"shared", "local", "global", None}
        Where it lies; None if that cannot be seen.
    """

    data: ir.Value
    shape: tuple[ir.Value, ...]
    strides: tuple[ir.Value, ...]
    space: str | None


def inspect(context: Any, builder: ir.IRBuilder, ty: types.Array, value: ir.Value) -> PlainArray:
    """Take an array apart, following its members to where they were set."""
    function = builder.function
    array = make_array(ty)(context, builder, value)
    positions = context.data_model_manager[ty]

    def numbers(member: str) -> tuple[ir.Value, ...]:
        at_run_time = cgutils.unpack_tuple(builder, getattr(array, member))
        place = positions.get_field_position(member)
        now = [_number(function, value, (place, i)) for i in range(ty.ndim)]
        return tuple(n if isinstance(n, ir.Constant) else then for n, then in zip(now, at_run_time, strict=True))

    root = _resolve(function, value, (positions.get_field_position("data"),))
    return PlainArray(array.data, numbers("shape"), numbers("strides"), _space(root))


def _number(function: ir.Function, value: ir.Value, path: tuple[int, ...] = ()) -> ir.Value:
    """What `_resolve` finds; a product of constants, as the stride of a slice is one, multiplied out."""
    found = _resolve(function, value, path)
    if isinstance(found, ir.Instruction) and found.opname == "mul":
        factors = [_number(function, factor) for factor in found.operands]
        if all(isinstance(factor, ir.Constant) for factor in factors):
            return found.type(math.prod(factor.constant for factor in factors))
    return found


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
    known = _known(array.shape)
    rule = plain_array_rules.plain_array(operand, space, extents, array.space, known)
    for have, want, is_known in zip(array.shape, extents, known, strict=True):
        if is_known is None:
            too_small = builder.icmp_signed("<", have, have.type(want))
            with builder.if_then(too_small, likely=False):
                _stop(builder, f"{rule}\n")


def line_distance(builder: ir.IRBuilder, operand: str, array: PlainArray, layout: TileLayout) -> ir.Value:
    """Elements from a line of a 2-D view to the next; views whose lines are no runs of elements are refused alike."""
    known, itemsize = _known(array.strides), layout.dtype.itemsize
    rule = plain_array_rules.plain_lines(operand, layout, known)
    line, element = array.strides
    if None in known:
        overlaps = builder.icmp_signed("<", line, line.type(layout.line_length * itemsize))
        is_odd = builder.icmp_signed("!=", builder.srem(line, line.type(itemsize)), line.type(0))
        has_gaps = builder.icmp_signed("!=", element, element.type(itemsize))
        with builder.if_then(builder.or_(builder.or_(overlaps, is_odd), has_gaps), likely=False):
            _stop(builder, f"{rule}\n")
    return builder.sdiv(line, line.type(itemsize))


def _known(values: tuple[ir.Value, ...]) -> tuple[int | None, ...]:
    return tuple(value.constant if isinstance(value, ir.Constant) else None for value in values)


def _stop(builder: ir.IRBuilder, message: str) -> None:
    """Print a message and end the kernel with an error."""
    text = builder.bitcast(declare_string(builder, message), INT8.as_pointer())
    builder.call(declare_vprint(builder.module), [text, ir.Constant(INT8.as_pointer(), None)])
    builder.call(ir.InlineAsm(ir.FunctionType(ir.VoidType(), []), "trap;", "", side_effect=True), [])


def global_array(
    context: Any, builder: ir.IRBuilder, ty: types.Array, value: ir.Value, index: ir.Value | None = None
) -> list[ir.Value]:
    """Address, rows, columns, and their strides in bytes; a 1-D array is one row.

    Of a 3-D array the matrix at `index`, which has no rows where the array has no such matrix.
    """
    array = make_array(ty)(context, builder, value)
    data, shape, strides = array.data, *(cgutils.unpack_tuple(builder, x) for x in (array.shape, array.strides))
    if ty.ndim == 1:
        shape, strides = [INT64(1), *shape], [INT64(0), *strides]
    if ty.ndim == 3:
        exists = builder.icmp_unsigned("<", index, shape[0])
        first = builder.bitcast(data, INT8.as_pointer())
        data = builder.bitcast(builder.gep(first, [builder.mul(index, strides[0])]), data.type)
        shape, strides = [builder.select(exists, shape[1], INT64(0)), shape[2]], strides[1:]
    return [data, *shape, *strides]
