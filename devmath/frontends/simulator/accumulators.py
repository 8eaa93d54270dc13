"""The verbs on accumulators: conversion, reductions, vectors of rows and columns, functions of the user's own."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ...accumulator_device import REDUCTIONS, VECTORS
from ...dtypes import DType, lookup
from .. import mainloop_rules, rules, vector_rules
from ..operands import VectorOperand, seen_along
from .block import Thread, current_thread
from .bodies import reserve, sharers, simulated, together
from .calls import Call
from .fragment import Fragment, Vector, gathered, held
from .mainloop import TileIndex
from .values import argument, converts_to, element, wide_type
from .values import convert as rounded

_OPERATIONS: dict[str, Callable[..., Any]] = {"max": np.max, "min": np.min, "sum": np.sum}


@simulated
def convert(acc: Any, dtype: Any) -> Fragment:
    thread = current_thread("convert")
    made = vector_rules.convert(argument(acc), _dtype_of(dtype), argument(dtype))
    result = Fragment(made.desc, thread.thread_id, made.converted)
    result.values[:] = rounded(acc.values, result.values.dtype)
    return held(thread, result)


def _dtype_of(value: Any) -> DType | None:
    """The row of our table that a dtype names; None for anything else, such as the name of one."""
    if not isinstance(value, type | np.dtype):
        return None
    try:
        return lookup(value)
    except TypeError:
        return None


def _simulate_reduction(name: str) -> None:
    operation = _OPERATIONS[name.split("_")[1]]

    def reduce(acc: Any) -> Vector:
        thread = current_thread(name)
        made = vector_rules.reduction(name, argument(acc))
        _reserve_for_warps(thread, made)

        def of_tile(shares: list[np.ndarray]) -> np.ndarray:
            tile = gathered(acc.map, shares, wide_type(made.dtype))
            with np.errstate(all="ignore"):
                return rounded(operation(tile, axis=1 if made.axis == "row" else 0), made.dtype.numpy)

        call = Call.here(f"devmath.{name}")
        values = together(thread, call, sharers(made.desc), made.desc, of_tile, acc.values.copy())
        return held(thread, Vector(made, thread.thread_id, values))

    reduce.__name__ = name
    simulated(reduce)


def _reserve_for_warps(thread: Thread, made: VectorOperand) -> None:
    """Count the shared memory through which warps that share a row exchange results."""
    if made.map.warps_of_row > 1:
        size_bytes = made.map.warps_of_row * made.map.rows_reached * made.dtype.itemsize
        with thread.block.lock:
            reserve(thread.block, size_bytes, size_bytes)


def _simulate_vector(name: str) -> None:
    def vector(desc: Any, values: Any) -> Vector:
        thread = current_thread(name)
        made = vector_rules.vector(name, argument(desc), argument(values))
        thread.block.bind(made.desc)
        if not isinstance(values, Vector):
            everywhere = np.full(made.map.rows, rounded(values, made.dtype.numpy))
            return held(thread, Vector(made, thread.thread_id, everywhere))

        def of_tile(shares: list[Vector]) -> np.ndarray:
            whole = np.empty(made.map.rows, made.dtype.numpy)
            for share in shares:
                whole[share.rows[share.inside]] = share.values[share.inside]
            return whole

        call = Call.here(f"devmath.{name}")
        whole = together(thread, call, sharers(made.desc), made.desc, of_tile, values)
        return held(thread, Vector(made, thread.thread_id, whole))

    vector.__name__ = name
    simulated(vector)


for _verb in REDUCTIONS:
    _simulate_reduction(_verb.__name__)
for _verb in VECTORS:
    _simulate_vector(_verb.__name__)


@simulated
def apply(function: Any, acc: Any, *extra: Any) -> None:
    current_thread("apply")
    inside, origin = acc.inside if isinstance(acc, Fragment | Vector) else (), (0, 0)
    if extra and isinstance(extra[0], TileIndex):
        tile, extra = extra[0], extra[1:]
        mainloop_rules.accumulator_of("apply", argument(acc), tile)
        inside, origin = tile.inside(acc), (tile.row, tile.col)
    vector_rules.apply(argument(function), argument(acc), *map(argument, extra))
    is_vector = isinstance(acc, Vector)
    fragment = seen_along(acc.axis, acc.map) if is_vector else acc.map
    for slot in np.flatnonzero(inside):
        # A vector's value goes with any register of its row.
        register = acc.map.row_of_register.holder(int(slot)) if is_vector else int(slot)
        row, col = origin[0] + int(acc.rows[slot]), 0 if is_vector else origin[1] + int(acc.cols[slot])
        place = (row,) if is_vector else (row, col)
        others = (x.of_register(fragment, register) if isinstance(x, Vector) else x for x in extra)
        result = function(element(acc.values[slot], acc.dtype), *place, *others)
        if not converts_to(result, acc.dtype):
            rules.refuse_result(acc, argument(result))
        acc.values[slot] = rounded(result, acc.dtype.numpy)
