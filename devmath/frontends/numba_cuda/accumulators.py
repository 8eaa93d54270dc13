"""Verbs on accumulators as code: conversion, reductions, vectors of rows and columns, functions of the user's own."""

import functools
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

from llvmlite import ir
from numba.cuda import types
from numba.cuda.typing.templates import Signature

from ... import accumulator_device, verbs
from ...accumulator_device import REDUCTIONS, VECTORS
from ...fragments import FragmentMap
from ...lto import tile_source
from ...lto.unit import Unit
from ...verbs import Verb
from ..operands import seen_along
from .attributes import block_rank, emit_digits, read_element, write_element
from .kernel import exchange_buffer
from .linking import call_unit
from .lowering import lowered, registers, text_of
from .mainloop import TileBounds, TileIndexType
from .signatures import applied_types
from .types import FragmentType, VectorType

INT32, INT64 = ir.IntType(32), ir.IntType(64)


@lowered(accumulator_device.convert)
def lower_convert(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> ir.Value:
    source, made = sig.args[0], sig.return_type
    memory = registers(context, builder, made, made.map.size)
    text = text_of(tile_source.convert_registers, made.map.size, source.dtype, made.dtype)
    call_unit(context, builder, Unit.render(f"convert_{source.dtype.name}_{made.dtype.name}", text), [args[0], memory])
    return memory


def _lower_reduction(verb: Verb) -> None:
    operation = verb.__name__.split("_")[1]

    @lowered(verb)
    def lower(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> ir.Value:
        (source,), made = sig.args, sig.return_type
        memory = registers(context, builder, made, made.argument.slots)
        shared_warps = made.map.warps_of_row if made.map.warps_of_row > 1 else 0
        scratch_bytes = shared_warps * made.map.rows_reached * made.dtype.itemsize
        scratch = exchange_buffer(context, builder, "block", scratch_bytes)
        text = text_of(tile_source.reduce_rows, operation, made.map, source.dtype, made.dtype)
        unit = Unit.render(f"{verb.__name__}_{source.dtype.name}", text)
        call_unit(context, builder, unit, [args[0], memory, *scratch])
        return memory


def _lower_vector(verb: Verb) -> None:
    @lowered(verb)
    def lower(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> ir.Value:
        values, made = sig.args[1], sig.return_type
        slots = made.argument.slots
        memory = registers(context, builder, made, slots)
        if isinstance(values, VectorType) and not values.argument.deals_out_like(
            seen_along(made.argument.axis, made.map)
        ):
            scratch = exchange_buffer(context, builder, "block", made.map.rows * made.dtype.itemsize)
            text = text_of(tile_source.redistribute_rows, values.map, made.map, made.dtype)
            unit = Unit.render(f"{verb.__name__}_{made.dtype.name}", text)
            call_unit(context, builder, unit, [args[1], memory, *scratch])
            return memory
        for slot in (INT64(i) for i in range(slots)):
            value = args[1]
            if isinstance(values, VectorType):
                value = context.unpack_value(builder, made.element, builder.gep(value, [slot]))
            context.pack_value(builder, made.element, value, builder.gep(memory, [slot]))
        return memory


for _reduction in REDUCTIONS:
    _lower_reduction(_reduction)
for _vector in VECTORS:
    _lower_vector(_vector)


@lowered(verbs.apply)
def lower_apply(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> ir.Value:
    function_type, acc = sig.args[:2]
    extra_types, values, tile = sig.args[2:], args[2:], None
    if values and isinstance(extra_types[0], TileIndexType):
        tile = TileBounds(builder, extra_types[0], values[0])
        extra_types, values = extra_types[1:], values[1:]
    call_signature = function_type.get_call_type(context.typing_context, applied_types(acc, extra_types), {})
    call = context.get_function(function_type, call_signature)
    context.add_linking_libs(getattr(call, "libs", ()))
    is_vector = isinstance(acc, VectorType)
    fragment = seen_along(acc.argument.axis, acc.map) if is_vector else acc.map

    def element(ty: FragmentType | VectorType, first: ir.Value, register: int) -> ir.Value:
        """Address of what register `register` of an accumulator, or its row or column in a vector, has."""
        index = register
        if isinstance(ty, VectorType):
            index = seen_along(ty.argument.axis, fragment).row_of_register.slots(register)
        return builder.gep(first, [INT64(index)])

    def replace(register: int, place: list[ir.Value]) -> None:
        address = element(acc, args[1], register)
        extra = [
            read_element(context, builder, ty, element(ty, value, register)) if _is_vector(ty) else value
            for ty, value in zip(extra_types, values, strict=True)
        ]
        result = call(builder, (read_element(context, builder, acc, address), *place, *extra))
        result = context.cast(builder, result, call_signature.return_type, acc.value)
        write_element(context, builder, acc, result, address)

    _replace_all(builder, acc.map, is_vector, tile, replace)
    return context.get_dummy_value()


def _is_vector(ty: types.Type) -> bool:
    return isinstance(ty, VectorType)


def _replace_all(
    builder: ir.IRBuilder,
    fragment: FragmentMap,
    of_rows: bool,
    tile: TileBounds | None,
    replace: Callable[[int, list[ir.Value]], None],
) -> None:
    """Call `replace` for each register, or one of each row, with the place of its element, and emit what it emits.

    With a tile of a whole matrix there are two copies of the code: most tiles lie inside, and need no checks.
    """

    def emit(bounds: list[ir.Value] | None) -> None:
        for register, place, inside in _places(builder, fragment, of_rows, bounds):
            starts = () if tile is None else (tile.row, tile.col)
            in_matrices = [_add(builder, *pair) for pair in zip(starts, place, strict=True)] if starts else place
            with builder.if_then(inside) if inside is not None else nullcontext():
                replace(register, in_matrices)

    if tile is None or not fragment.always_in_bounds:
        emit(None if tile is None else [tile.rows, tile.cols])
        return
    with builder.if_else(tile.is_whole) as (whole, edge):
        with whole:
            emit(None)
        with edge:
            emit([tile.rows, tile.cols])


def _add(builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    """Sum of indices: neither is negative, nor their sum too large."""
    return builder.add(x, y, flags=("nuw", "nsw"))


def _places(
    builder: ir.IRBuilder, fragment: FragmentMap, of_rows: bool, bounds: list[ir.Value] | None
) -> Iterator[tuple[int, list[ir.Value], ir.Value | None]]:
    """Each register, or one of each row: its number, its row and column, whether that is in the tile; None for always.

    Of rows: the row alone. `bounds` are the rows and columns of the tile where those of the fragment are too many.
    """
    rank = block_rank(builder)
    axes = [(fragment.rows, fragment.row_of_thread, fragment.row_of_register)]
    numbers = [fragment.row_of_register.holder(slot) for slot in range(fragment.row_of_register.count)]
    if not of_rows:
        axes.append((fragment.cols, fragment.col_of_thread, fragment.col_of_register))
        numbers = list(range(fragment.size))
    of_thread = [builder.zext(emit_digits(builder, digits, rank), INT64) for _, digits, _ in axes]
    is_whole = bounds is None and all(thread.maximum + register.maximum < extent for extent, thread, register in axes)
    for number in numbers:
        place = [
            _add(builder, first, INT64(register(number)))
            for first, (_, _, register) in zip(of_thread, axes, strict=True)
        ]
        extents = bounds or [INT64(extent) for extent, *_ in axes]
        checks = [builder.icmp_unsigned("<", index, extent) for index, extent in zip(place, extents, strict=True)]
        yield number, place, None if is_whole else functools.reduce(builder.and_, checks)
