"""Constants of descriptors, tiles and fragments in kernels; ``t[i, j]`` and ``acc[i]``; the maps of a fragment."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.cuda import cgutils, types
from numba.cuda.cudadecl import registry as typing_registry
from numba.cuda.cudaimpl import registry as lowering_registry
from numba.cuda.nvvmutils import call_sreg
from numba.cuda.typing.templates import AbstractTemplate, AttributeTemplate, Signature, bound_function, signature

from ...blas_device import Gemm
from ...dtypes import BY_NAME, DType, lookup
from ...fragments import Digits
from ...layouts import CHUNK_BYTES, TileLayout
from ...lto import tile_source
from ...lto.unit import Unit
from .. import rules
from .linking import call_unit, target_arch
from .types import ConstantType, FragmentType, StackType, TileType, VectorType, argument, converts_to, numba_type

INT32, INT64 = ir.IntType(32), ir.IntType(64)

#: What a kernel may read from a descriptor or an operand: numbers, tuples of numbers, dtypes, and descriptors.
CONSTANTS = frozenset(
    (
        *("m", "n", "k", "a", "b", "c", "threads", "block_dim", "launch_bounds", "shape", "size_bytes", "common"),
        *("dtype", "c_dtype", "accumulator_dtype"),
        *("forward", "inverse", "ffts_per_block", "elements_per_thread", "threads_per_fft"),
        *("gemms_per_block", "threads_per_gemm"),
    )
)


class _ConstantAttributes(AttributeTemplate):
    """Attributes whose values are known while typing; `value`, of each subclass, finds one, or None."""

    value: Callable[[Any, str], Any]

    def generic_resolve(self, ty: types.Type, attribute: str) -> types.Type | None:
        value = self.value(ty, attribute)
        if value is None:
            return None
        if isinstance(value, int):
            return types.literal(value)
        if isinstance(value, tuple):
            return types.UniTuple(types.intp, len(value))
        if isinstance(value, np.dtype):
            return types.DType(numba_type(lookup(value)))
        return ConstantType(value)


def _constant_of_descriptor(ty: ConstantType, attribute: str) -> Any:
    if isinstance(ty.value, Gemm) and attribute in ("block_dim", "launch_bounds"):
        bounds = ty.value.launch_bounds_on(target_arch())
        return bounds if attribute == "launch_bounds" else (bounds[0], 1, 1)
    return getattr(ty.value, attribute, None) if attribute in CONSTANTS else None


def _constant_of_tile(ty: TileType, attribute: str) -> Any:
    return (ty.layout.rows, ty.layout.cols) if attribute == "shape" else None


def _constant_of_stack(ty: StackType, attribute: str) -> Any:
    return ty.stages if attribute == "stages" else None


def _constant_of_fragment(ty: FragmentType, attribute: str) -> Any:
    return ty.map.size if attribute == "size" else None


@typing_registry.register_attr
class DescriptorAttributes(_ConstantAttributes):
    key = ConstantType
    value = staticmethod(_constant_of_descriptor)

    @bound_function("devmath.grid")
    def resolve_grid(self, ty: ConstantType, args: Any, kws: Any) -> Signature | None:
        rules.grid(argument(ty), *(() if kws else map(argument, args)))
        return signature(types.intp, types.intp, recvr=ty)


@typing_registry.register_attr
class TileAttributes(_ConstantAttributes):
    key = TileType
    value = staticmethod(_constant_of_tile)


@typing_registry.register_attr
class StackAttributes(_ConstantAttributes):
    key = StackType
    value = staticmethod(_constant_of_stack)


@typing_registry.register_attr
class FragmentAttributes(_ConstantAttributes):
    key = FragmentType
    value = staticmethod(_constant_of_fragment)

    def _register_signature(self, ty: FragmentType, name: str, args: Any, kws: Any, result: types.Type) -> Signature:
        rules.register(ty.argument, name, *(() if kws else map(argument, args)))
        return signature(result, types.intp, recvr=ty)

    @bound_function("devmath.fragment.row")
    def resolve_row(self, ty: FragmentType, args: Any, kws: Any) -> Signature:
        return self._register_signature(ty, "row", args, kws, types.intp)

    @bound_function("devmath.fragment.col")
    def resolve_col(self, ty: FragmentType, args: Any, kws: Any) -> Signature:
        return self._register_signature(ty, "col", args, kws, types.intp)

    @bound_function("devmath.fragment.in_bounds")
    def resolve_in_bounds(self, ty: FragmentType, args: Any, kws: Any) -> Signature:
        return self._register_signature(ty, "in_bounds", args, kws, types.boolean)

    @bound_function("devmath.fragment.index")
    def resolve_index(self, ty: FragmentType, args: Any, kws: Any) -> Signature:
        return self._register_signature(ty, "index", args, kws, types.intp)


def _lower_constants(key: type[types.Type], value_of: Any) -> None:
    @lowering_registry.lower_getattr_generic(key)
    def lower(context: Any, builder: ir.IRBuilder, ty: types.Type, value: ir.Value, attribute: str) -> ir.Value:
        constant = value_of(ty, attribute)
        if isinstance(constant, int):
            return context.get_constant(types.intp, constant)
        if isinstance(constant, tuple):
            return context.make_tuple(
                builder,
                types.UniTuple(types.intp, len(constant)),
                [context.get_constant(types.intp, item) for item in constant],
            )
        return context.get_dummy_value()


_lower_constants(ConstantType, _constant_of_descriptor)
_lower_constants(TileType, _constant_of_tile)
_lower_constants(StackType, _constant_of_stack)
_lower_constants(FragmentType, _constant_of_fragment)


@lowering_registry.lower("devmath.grid", ConstantType, types.intp)
def lower_grid(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> ir.Value:
    """`FFT.grid` or `Gemm.grid` of a count that is not negative."""
    desc = sig.args[0].value
    per_block = desc.gemms_per_block if isinstance(desc, Gemm) else desc.ffts_per_block
    blocks = builder.sdiv(builder.add(args[1], INT64(per_block - 1)), INT64(per_block))
    return builder.select(builder.icmp_signed(">", blocks, INT64(1)), blocks, INT64(1))


# Index arithmetic in LLVM IR: 32 bits, unsigned, so that constants fold and Numba's wrap-around of negative indices,
# a select on each access, is seen to be dead after the zero extension.


def block_rank(builder: ir.IRBuilder) -> ir.Value:
    """Rank of the calling thread in its block; x runs fastest."""
    tid_x, tid_y, tid_z, extent_x, extent_y = (
        call_sreg(builder, name) for name in ("tid.x", "tid.y", "tid.z", "ntid.x", "ntid.y")
    )
    return builder.add(tid_x, builder.mul(extent_x, builder.add(tid_y, builder.mul(extent_y, tid_z))))


def emit_digits(builder: ir.IRBuilder, digits: Digits, x: ir.Value) -> ir.Value:
    """`Digits` applied to a 32-bit value."""
    total = INT32(0)
    for divisor, modulus, stride in digits.terms:
        digit = builder.urem(builder.udiv(x, INT32(divisor)), INT32(modulus))
        total = builder.add(total, builder.mul(digit, INT32(stride)))
    return total


def emit_offset(builder: ir.IRBuilder, layout: TileLayout, row: ir.Value, col: ir.Value) -> ir.Value:
    """`TileLayout.offset` of 32-bit indices."""
    line, position = (row, col) if layout.order == "row" else (col, row)
    if layout.panels > 1:
        ld = INT32(layout.ld)
        line = builder.add(line, builder.mul(builder.udiv(position, ld), INT32(layout.lines_allocated)))
        position = builder.urem(position, ld)
    if layout.swizzle:
        chunk_length = INT32(CHUNK_BYTES // layout.dtype.itemsize)
        pattern = builder.urem(builder.udiv(line, INT32(8 // layout.swizzle)), INT32(layout.swizzle))
        chunk = builder.xor(builder.udiv(position, chunk_length), pattern)
        position = builder.add(builder.mul(chunk, chunk_length), builder.urem(position, chunk_length))
    return builder.add(builder.mul(line, INT32(layout.ld)), position)


def _map_function(digits_of_thread: str, digits_of_register: str) -> Any:
    def lower(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> ir.Value:
        fragment = sig.args[0].map
        register = builder.trunc(args[1], INT32)
        thread = emit_digits(builder, getattr(fragment, digits_of_thread), block_rank(builder))
        sum_ = builder.add(thread, emit_digits(builder, getattr(fragment, digits_of_register), register))
        return builder.zext(sum_, INT64)

    return lower


_row = _map_function("row_of_thread", "row_of_register")
_col = _map_function("col_of_thread", "col_of_register")
lowering_registry.lower("devmath.fragment.row", FragmentType, types.intp)(_row)
lowering_registry.lower("devmath.fragment.col", FragmentType, types.intp)(_col)
lowering_registry.lower("devmath.fragment.index", FragmentType, types.intp)(_col)


@lowering_registry.lower("devmath.fragment.in_bounds", FragmentType, types.intp)
def lower_in_bounds(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> ir.Value:
    fragment = sig.args[0].map
    row, col = _row(context, builder, sig, args), _col(context, builder, sig, args)
    inside_rows = builder.icmp_unsigned("<", row, INT64(fragment.rows))
    return builder.and_(inside_rows, builder.icmp_unsigned("<", col, INT64(fragment.cols)))


def _register_items(key: type[types.Type], index_rule: Any, index_type: Any, address: Any) -> None:
    """Typing and lowering of ``x[index]`` and of ``x[index] = value``."""

    @typing_registry.register_global(operator.getitem)
    class GetItem(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Signature | None:
            if not isinstance(args[0], key):
                return None
            index_rule(argument(args[1]))
            return signature(args[0].value, args[0], index_type)

    @typing_registry.register_global(operator.setitem)
    class SetItem(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Signature | None:
            if not isinstance(args[0], key):
                return None
            holder, index, value = args
            index_rule(argument(index))
            if not converts_to(self.context, value, holder):
                rules.refuse_element(holder.argument, argument(value))
            return signature(types.none, holder, index_type, holder.value)

    @lowering_registry.lower(operator.getitem, key, index_type)
    def get(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> ir.Value:
        return read_element(context, builder, sig.args[0], address(builder, sig.args[0], args))

    @lowering_registry.lower(operator.setitem, key, index_type, types.Any)
    def set_(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> None:
        write_element(context, builder, sig.args[0], args[2], address(builder, sig.args[0], args))


def read_element(
    context: Any, builder: ir.IRBuilder, ty: TileType | FragmentType | VectorType, address: ir.Value
) -> ir.Value:
    """The element at an address, as a value of kernel code."""
    if ty.value == ty.element:
        return context.unpack_value(builder, ty.element, address)
    value = cgutils.alloca_once(builder, context.get_value_type(ty.value))
    _convert(context, builder, ty.argument.dtype, BY_NAME[ty.value.name], address, value)
    return builder.load(value)


def write_element(
    context: Any, builder: ir.IRBuilder, ty: TileType | FragmentType | VectorType, value: ir.Value, address: ir.Value
) -> None:
    """Make a value of kernel code the element at an address."""
    if ty.value == ty.element:
        context.pack_value(builder, ty.element, value, address)
    else:
        source = cgutils.alloca_once_value(builder, value)
        _convert(context, builder, BY_NAME[ty.value.name], ty.argument.dtype, source, address)


def _convert(
    context: Any, builder: ir.IRBuilder, from_: DType, to: DType, source: ir.Value, destination: ir.Value
) -> None:
    unit = Unit.render(
        f"convert_{from_.name}_to_{to.name}", lambda symbol: tile_source.convert_element(from_, to, symbol)
    )
    call_unit(context, builder, unit, [source, destination])


def _address_in_tile(builder: ir.IRBuilder, ty: TileType, args: Any) -> ir.Value:
    row, col = (builder.trunc(builder.extract_value(args[1], i), INT32) for i in range(2))
    return builder.gep(args[0], [builder.zext(emit_offset(builder, ty.layout, row, col), INT64)])


def _address_in_fragment(builder: ir.IRBuilder, ty: FragmentType, args: Any) -> ir.Value:
    return builder.gep(args[0], [args[1]])


_register_items(TileType, rules.index_of_tile, types.UniTuple(types.intp, 2), _address_in_tile)
_register_items(FragmentType, rules.index_of_fragment, types.intp, _address_in_fragment)


def _address_in_vector(builder: ir.IRBuilder, ty: VectorType, args: Any) -> ir.Value:
    slot = emit_digits(builder, ty.map.row_of_register.slots, builder.trunc(args[1], INT32))
    return builder.gep(args[0], [builder.zext(slot, INT64)])


_register_items(VectorType, rules.index_of_fragment, types.intp, _address_in_vector)


@typing_registry.register_global(operator.getitem)
class StageOfStack(AbstractTemplate):
    """``stack[s]``: a tile."""

    def generic(self, args: Any, kws: Any) -> Signature | None:
        if not isinstance(args[0], StackType):
            return None
        rules.index_of_stack(argument(args[1]))
        return signature(args[0].tile, args[0], types.intp)


@lowering_registry.lower(operator.getitem, StackType, types.intp)
def lower_stage(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> ir.Value:
    stack, index = args
    tile = sig.args[0].tile
    elements = INT32(tile.stage_bytes // tile.layout.dtype.itemsize)
    return builder.gep(stack, [builder.zext(builder.mul(builder.trunc(index, INT32), elements), INT64)])


@typing_registry.register_global(len)
class LengthOfStack(AbstractTemplate):
    """``len(stack)``: its stages."""

    def generic(self, args: Any, kws: Any) -> Signature | None:
        return signature(types.intp, *args) if len(args) == 1 and isinstance(args[0], StackType) else None


@lowering_registry.lower(len, StackType)
def lower_length(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> ir.Value:
    return context.get_constant(types.intp, sig.args[0].stages)
