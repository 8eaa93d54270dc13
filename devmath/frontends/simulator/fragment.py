"""Registers: this thread's share of a product or of a transform."""

import functools
import operator
from typing import Any

import numpy as np

from ...blas_device import Gemm
from ...dtypes import DType
from ...fft_device import FFT
from ...fragments import FragmentMap
from .. import operands, plain_array_rules, rules
from ..operands import seen_along
from .block import Thread
from .calls import line_of_call
from .values import argument, convert, converts_to, element, poisoned, space_of, unwrap


@functools.cache
def coordinates(fragment: FragmentMap, threads: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, columns and which of them lie in the tile, each (threads, registers)."""
    thread, register = np.ogrid[:threads, : fragment.size]
    maps = (fragment.row, fragment.col, fragment.in_bounds)
    rows, cols, inside = (np.broadcast_to(of(thread, register), (threads, fragment.size)) for of in maps)
    return rows, cols, inside


@functools.cache
def owners(fragment: FragmentMap, threads: int) -> np.ndarray:
    """Which thread holds each element of the tile, (rows, columns)."""
    rows, cols, inside = coordinates(fragment, threads)
    ranks = np.broadcast_to(np.arange(threads)[:, None], inside.shape)
    owner = np.empty((fragment.rows, fragment.cols), np.int32)
    owner[rows[inside], cols[inside]] = ranks[inside]
    return owner


def gathered(fragment: FragmentMap, shares: list[np.ndarray], dtype: Any) -> np.ndarray:
    """The tile that the registers of all threads hold, converted to `dtype`."""
    rows, cols, inside = coordinates(fragment, len(shares))
    tile = np.empty((fragment.rows, fragment.cols), dtype)
    tile[rows[inside], cols[inside]] = np.stack(shares)[inside]
    return tile


class Fragment(operands.FragmentOperand):
    """A thread's share of a product (zeroed) or of a transform (NaN until it is loaded).

    Parameters
    ----------
    desc : Gemm or FFT
        The descriptor that made it; for a transform the forward one, since both directions hold data alike.
    thread : int
        Rank of the thread in its block.
    converted : DType, optional
        Type of the elements where it is not that of the sums.
    """

    def __init__(self, desc: Gemm | FFT, thread: int, converted: DType | None = None):
        super().__init__(desc, converted=converted)
        self.thread = thread
        self.values = poisoned(self.size, self.dtype)
        if isinstance(desc, Gemm):
            self.values[:] = 0
        self.rows, self.cols, self.inside = (of[thread % len(of)] for of in coordinates(self.map, desc.plan.threads))

    @property
    def size(self) -> int:
        return self.map.size

    def row(self, i: Any) -> int:
        return int(self.rows[self._register("row", i)])

    def col(self, i: Any) -> int:
        return int(self.cols[self._register("col", i)])

    def in_bounds(self, i: Any) -> bool:
        return bool(self.inside[self._register("in_bounds", i)])

    def index(self, i: Any) -> int:
        return int(self.cols[self._register("index", i)])

    def __getitem__(self, index: Any) -> Any:
        return element(self.values[self._item(index)], self.dtype)

    def __setitem__(self, index: Any, value: Any) -> None:
        item = self._item(index)
        if not converts_to(value, self.dtype):
            rules.refuse_element(self, argument(value))
        self.values[item] = convert(value, self.dtype.numpy)

    def _item(self, index: Any) -> int:
        rules.index_of_fragment(argument(index))
        return self._within(operator.index(index))

    def _register(self, name: str, i: Any) -> int:
        rules.register(self, name, argument(i))
        return self._within(operator.index(i))

    def _within(self, i: int) -> int:
        if not 0 <= i < self.size:
            raise IndexError(f"{self} has registers 0 to {self.size - 1}, got {i}")
        return i


class Vector(operands.VectorOperand):
    """A thread's share of a value for each row, or each column, of a product's result.

    Parameters
    ----------
    made : VectorOperand
        What a rule found that it is.
    thread : int
        Rank of the thread in its block.
    values : numpy.ndarray
        One value for each row, or each column, of the product. Elsewhere there is NaN.
    """

    def __init__(self, made: operands.VectorOperand, thread: int, values: np.ndarray):
        super().__init__(made.desc, made.axis, made.dtype)
        self.thread = thread
        rows = rows_of_slots(self.map, made.desc.plan.threads)
        self.rows = rows[thread % len(rows)]
        self.inside = self.rows < self.map.rows
        self.values = poisoned(self.slots, self.dtype)
        self.values[self.inside] = values[self.rows[self.inside]]
        self._slot = self.map.row_of_register.slots

    def of_register(self, fragment: FragmentMap, i: int) -> Any:
        """The value that goes with register `i` of an accumulator."""
        return self.values[seen_along(self.axis, fragment).row_of_register.slots(i)]

    def __getitem__(self, index: Any) -> Any:
        return self.values[self._item(index)]

    def __setitem__(self, index: Any, value: Any) -> None:
        slot = self._item(index)
        if not converts_to(value, self.dtype):
            rules.refuse_element(self, argument(value))
        self.values[slot] = convert(value, self.dtype.numpy)

    def _item(self, index: Any) -> int:
        rules.index_of_fragment(argument(index))
        i = operator.index(index)
        if not 0 <= i < self.map.size:
            raise IndexError(f"{self} goes with registers 0 to {self.map.size - 1}, got {i}")
        return int(self._slot(i))


@functools.cache
def rows_of_slots(fragment: FragmentMap, threads: int) -> np.ndarray:
    """The row of every slot of a row vector, (threads, slots)."""
    thread, slot = np.ogrid[:threads, : fragment.row_of_register.count]
    return fragment.row(thread, fragment.row_of_register.holder(slot))


def held(thread: Thread, made: Fragment | Vector) -> Any:
    """Registers belong to the line that makes them: each run of it has the same ones, with new contents."""
    line = (*line_of_call(), made.map, made.dtype)
    registers = thread.held.setdefault(line, made)
    registers.values[:] = made.values
    return registers


def registers_of(operand: str, size: int, value: Any) -> np.ndarray:
    """The registers of a fragment, or `size` elements of a plain array in local memory in their place."""
    if isinstance(value, Fragment):
        return value.values
    array = unwrap(value)
    plain_array_rules.plain_array(operand, "local", (size,), space_of(value), array.shape)
    return array[:size]
