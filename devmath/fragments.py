"""Which elements of a tile, or of a transform, each thread of a block holds in registers.

Every layout here is a sum of *digits*: the thread's rank and the register's number are taken apart by division and
remainder, and each digit moves the row or the column by its own stride. One description serves the simulator (NumPy),
the lowering (integer arithmetic in LLVM IR, folded for constant registers) and the checks of the C++ headers.
"""

import math
from dataclasses import dataclass
from typing import Any

WARP = 32  # threads


@dataclass(frozen=True)
class Digits:
    """``x -> sum((x // divisor) % modulus * stride)`` over `terms` of (divisor, modulus, stride)."""

    terms: tuple[tuple[int, int, int], ...]

    def __call__(self, x: Any) -> Any:
        return sum((x // divisor % modulus * stride for divisor, modulus, stride in self.terms), 0 * x)

    @property
    def maximum(self) -> int:
        """The largest value, for whatever `x`."""
        return sum((modulus - 1) * stride for _, modulus, stride in self.terms)

    @property
    def count(self) -> int:
        """Different combinations of digits; each has a value of its own where `x` says which element is meant."""
        return math.prod(modulus for _, modulus, _ in self.terms)

    @property
    def slots(self) -> "Digits":
        """``x ->`` which of the combinations of digits `x` has: 0, 1, ... `count` - 1."""
        weights = [math.prod(modulus for _, modulus, _ in self.terms[:i]) for i in range(len(self.terms))]
        return Digits(tuple((*term[:2], weight) for term, weight in zip(self.terms, weights, strict=True)))

    def inverse(self, value: Any) -> Any:
        """The least `x` of a value, where each stride is a multiple of all that the smaller strides reach."""
        return sum(value // stride % modulus * divisor for divisor, modulus, stride in self.terms)

    def holder(self, slot: Any) -> Any:
        """The least `x` of a slot."""
        return sum(slot // weight % modulus * divisor for divisor, modulus, weight in self.slots.terms)


@dataclass(frozen=True)
class FragmentMap:
    """The share of a ``rows x cols`` tile that a thread holds: `size` registers.

    Register ``i`` of thread ``t`` is element ``(row(t, i), col(t, i))``. Where the extents are no multiples of the
    instruction's shape some registers lie outside the tile; `in_bounds` tells.
    """

    rows: int
    cols: int
    size: int
    row_of_thread: Digits
    row_of_register: Digits
    col_of_thread: Digits
    col_of_register: Digits

    def row(self, thread: Any, register: Any) -> Any:
        """Row of the element, counted in the tile."""
        return self.row_of_thread(thread) + self.row_of_register(register)

    def col(self, thread: Any, register: Any) -> Any:
        """Column of the element, counted in the tile."""
        return self.col_of_thread(thread) + self.col_of_register(register)

    def in_bounds(self, thread: Any, register: Any) -> Any:
        """True where the register holds an element of the tile."""
        return (self.row(thread, register) < self.rows) & (self.col(thread, register) < self.cols)

    @property
    def always_in_bounds(self) -> bool:
        """True where no register of any thread lies outside the tile."""
        last_row = self.row_of_thread.maximum + self.row_of_register.maximum
        last_col = self.col_of_thread.maximum + self.col_of_register.maximum
        return last_row < self.rows and last_col < self.cols

    @property
    def transposed(self) -> "FragmentMap":
        """The same registers as a share of the transposed tile."""
        rows, cols = (self.row_of_thread, self.row_of_register), (self.col_of_thread, self.col_of_register)
        return FragmentMap(self.cols, self.rows, self.size, *cols, *rows)

    @property
    def rows_reached(self) -> int:
        """One past the last row that any register lies in, inside or outside the tile."""
        return self.row_of_thread.maximum + self.row_of_register.maximum + 1

    @property
    def warps_of_row(self) -> int:
        """Warps that share a row."""
        return math.prod(modulus for divisor, modulus, _ in self.col_of_thread.terms if divisor >= WARP)
