"""Whole matrix products: the tiles of a block one after another, each with NumPy."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...blas_device import Gemm
from ...errors import SimulationError
from ...lto.mainloop_plan import tile_number
from .. import mainloop_rules
from ..operands import TileIndexOperand
from .block import Thread, current_thread
from .calls import Call, caller, device_function
from .fragment import Fragment
from .values import argument, convert, poisoned, unwrap

MULTIPROCESSORS = 1  # so that a block has several tiles


class TileIndex(TileIndexOperand):
    """A tile of a loop over tiles.

    Parameters
    ----------
    desc : Gemm
    row, col : int
        Its first element.
    a, b, c : numpy.ndarray
        The matrices.
    """

    def __init__(self, desc: Gemm, row: int, col: int, a: np.ndarray, b: np.ndarray, c: np.ndarray):
        super().__init__(desc)
        self.row, self.col = row, col
        self.is_multiplied = False
        self._a, self._b, self._c = a, b, c

    def inside(self, acc: Fragment) -> np.ndarray:
        """Which registers of an accumulator hold elements of C."""
        return acc.inside & (self.row + acc.rows < self._c.shape[0]) & (self.col + acc.cols < self._c.shape[1])

    def product(self) -> np.ndarray:
        """The tile in double precision, zeros past the edges."""
        mm = self.desc
        wide = np.complex128 if mm.dtype.kind == "c" else np.float64
        left, right = self._a[self.row : self.row + mm.m].astype(wide), self._b[:, self.col : self.col + mm.n]
        right = right.astype(wide)
        with np.errstate(all="ignore"):
            part = (left.conj() if mm.a_conj else left) @ (right.conj() if mm.b_conj else right)
        whole = np.zeros((mm.m, mm.n), wide)
        whole[: part.shape[0], : part.shape[1]] = part
        return whole


def tiles(desc: Any, a: Any, b: Any, c: Any) -> Iterator[TileIndex]:
    """The body of `devmath.tiles`."""
    thread = current_thread("tiles")
    mm = mainloop_rules.tiles(argument(desc), *map(argument, (a, b, c)))
    mainloop_rules.one_loop_a_kernel(device_function(caller()) is None, thread.has_mainloop)
    thread.has_mainloop = True
    thread.block.bind(mm)
    return _loop(thread, mm, Call.here("devmath.tiles"), *map(unwrap, (a, b, c)))


def _loop(thread: Thread, mm: Gemm, call: Call, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> Iterator[TileIndex]:
    thread.open_loop = call
    down, across = -(-c.shape[0] // mm.m), -(-c.shape[1] // mm.n)
    for number in range(thread.blockIdx.x, down * across, thread.block.blocks):
        row, col = tile_number(number, down, across)
        yield TileIndex(mm, row * mm.m, col * mm.n, a, b, c)
    thread.open_loop = None


def mainloop(desc: Any, tile: Any, acc: Any) -> None:
    """The body of `devmath.mainloop`."""
    thread = current_thread("mainloop")
    mm = mainloop_rules.mainloop(argument(desc), argument(tile), argument(acc))
    call = Call.here("devmath.mainloop")
    if tile.is_multiplied:
        raise SimulationError(f"{call}: a tile must be multiplied once, got a second call for the tile at"
                              f" ({tile.row}, {tile.col})")  # fmt: skip
    tile.is_multiplied = True

    def multiply(_: list[None]) -> np.ndarray:
        return tile.product()

    product = thread.block.meet(thread, call, (mm, tile.row, tile.col), None, multiply)
    acc.values[acc.inside] = convert(product[acc.rows[acc.inside], acc.cols[acc.inside]], acc.values.dtype)
    # What the instructions make of memory around the tile is no number to rely on.
    acc.values[~acc.inside] = poisoned(int((~acc.inside).sum()), acc.dtype)


def store_at(source: Fragment, target: Any, tile: TileIndex) -> np.ndarray:
    """The part of an array from the tile on, to which `devmath.store` copies an accumulator."""
    mainloop_rules.store_at(argument(source), argument(target), tile)
    array = unwrap(target)
    return array[tile.row : tile.row + tile.desc.m, tile.col : tile.col + tile.desc.n]


# Host calls.


def current_arch() -> None:
    """The simulator has no target."""


def multiprocessors() -> int:
    """Blocks that `Gemm.grid` launches at most."""
    return MULTIPROCESSORS


def operands(desc: Gemm, a: Any, b: Any, c: Any) -> tuple[Any, Any, Any]:
    """`Gemm.operands`: the arrays as they are, checked."""
    arrays = dict(zip("abc", (a, b, c), strict=True))
    found = {}
    for name, array in arrays.items():
        found[name] = unwrap(array)
        if not isinstance(found[name], np.ndarray):
            raise TypeError(f"{name} must be an array, got {type(array).__name__}")
    mainloop_rules.operands(desc, [x.dtype for x in found.values()], [x.shape for x in found.values()])
    for name, order in (("a", desc.a_order), ("b", desc.b_order)):
        mainloop_rules.order_of(name, order, found[name].shape, found[name].strides, found[name].itemsize)
    return a, b, c
