"""Registers: this thread's share of a product or of a transform."""

import functools
import operator
from typing import Any

import numpy as np

from ...blas_device import Gemm
from ...fft_device import FFT
from ...fragments import FragmentMap
from .. import plain_array_rules, rules
from .values import argument, convert, converts_to, poisoned, space_of, unwrap


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


class Fragment(rules.FragmentOperand):
    """A thread's share of a product (zeroed) or of a transform (NaN until it is loaded).

    Parameters
    ----------
    desc : Gemm or FFT
        The descriptor that made it; for a transform the forward one, since both directions hold data alike.
    thread : int
        Rank of the thread in its block.
    """

    def __init__(self, desc: Gemm | FFT, thread: int):
        super().__init__(desc)
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
        return self.values[self._item(index)]

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


def registers_of(operand: str, size: int, value: Any) -> np.ndarray:
    """The registers of a fragment, or `size` elements of a plain array in local memory in their place."""
    if isinstance(value, Fragment):
        return value.values
    array = unwrap(value)
    plain_array_rules.plain_array(operand, "local", (size,), space_of(value), array.shape)
    return array[:size]
