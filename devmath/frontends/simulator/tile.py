"""Matrices in shared memory: tiles, which know who accessed them, and plain arrays, which do not."""

import functools
import operator
from typing import Any

import numpy as np

from ...errors import SimulationError
from ...layouts import TileLayout, TilePerProduct
from .. import operands, plain_array_rules, rules
from .accesses import ANY, LANDING, Accesses, who
from .block import Block, current_thread
from .calls import Call
from .values import argument, convert, converts_to, element, poisoned, space_of, unwrap

WHOLE = (slice(None), slice(None))


@functools.cache
def offsets(layout: TileLayout) -> np.ndarray:
    """Where each element lies in memory, (rows, columns)."""
    rows, cols = np.ogrid[: layout.rows, : layout.cols]
    return np.broadcast_to(layout.offset(rows, cols), (layout.rows, layout.cols))


class Tile(operands.TileOperand):
    """A matrix in the shared memory of a block, with its real layout, paddings included; NaN until it is written.

    Parameters
    ----------
    block : Block
        The block whose memory it is.
    layout : TileLayout
        Placement of its elements.
    origin : Call
        The `devmath.shared` that made it.
    per_product : TilePerProduct, optional
        Given for a tile of one of the products of a block.
    first : int, optional
        With `per_product`: rank of the first thread that shares the tile.
    """

    def __init__(
        self,
        block: Block,
        layout: TileLayout,
        origin: Call,
        per_product: TilePerProduct | None = None,
        first: int = 0,
    ):
        super().__init__(layout, per_product)
        self.origin = origin
        self.first = first
        self.team = block.warps[first // 32] if per_product else block.team
        self._block = block
        self._memory = poisoned(layout.size_bytes // layout.dtype.itemsize, layout.dtype)
        self._everyone = _threads(first, per_product.threads) if per_product else str(block.team)
        self._reads, self._writes = (Accesses(self.shape, self._everyone) for _ in range(2))
        block.all_tiles.append(self)

    @property
    def identity(self) -> int:
        """Tells one tile from another."""
        return id(self)

    def read(self, call: Call, where: Any = WHOLE, thread: Any = ANY) -> Any:
        """Elements at `where`, read by `thread`: a rank, a rank for each of them, or any thread of the block."""
        with self._block.lock:
            self._require_order(self._writes, call, "reads", "wrote", where, thread)
            self._reads.record(where, self.team.epoch, thread, call)
            return self._memory[offsets(self.layout)[where]]

    def write(self, call: Call, values: Any, where: Any = WHOLE, thread: Any = ANY, landing: bool = False) -> None:
        """Set the elements at `where`; where it is `landing` they are not there before `devmath.wait` says so."""
        with self._block.lock:
            self._require_order(self._writes, call, "writes", "wrote", where, thread)
            self._require_order(self._reads, call, "writes", "may still read", where, thread)
            if landing:
                self._block.start_landing(self)
            self._writes.record(where, LANDING if landing else self.team.epoch, thread, call)
            self._memory[offsets(self.layout)[where]] = convert(values, self.layout.dtype.numpy)

    def land(self) -> None:
        """Complete the asynchronous writes."""
        self._writes.land(self.team.epoch)

    def _require_order(self, earlier: Accesses, call: Call, does: str, did: str, where: Any, thread: Any) -> None:
        unordered = earlier.unordered(where, self.team.epoch, thread)
        if not np.any(unordered):
            return
        shape = np.shape(unordered)
        first = tuple(int(i[0]) for i in np.nonzero(unordered)) if shape else ()
        rows, cols = (np.broadcast_to(index[where], shape) for index in np.indices(self.shape))
        element = int(rows[first]), int(cols[first])
        doer = who(int(np.broadcast_to(thread, shape)[first]), self._everyone)
        raise SimulationError(
            f"{call} by {doer} {does} element {element} of {self} (made at {self.origin.site}), which"
            f" {earlier.describe(element)} {did}: {self._remedy()} must come between"
        )

    def _remedy(self) -> str:
        """The `devmath.wait` that lands what is on its way to this tile, or else a barrier."""
        landing = (self.team if self.per_product else self._block.warps[0]).landing
        newer = next((len(landing) - 1 - i for i, load in enumerate(landing) if self in load), 0)
        whose = "mm" if self.per_product else ""
        if not newer:
            return f"devmath.wait({whose})"
        return f"devmath.wait({whose}{', ' if whose else ''}pending={newer}), or less,"

    def __getitem__(self, index: Any) -> Any:
        where = self._element(index)
        return element(self.read(Call.here("t[i, j]"), where, current_thread("shared").thread_id), self.layout.dtype)

    def __setitem__(self, index: Any, value: Any) -> None:
        where = self._element(index)
        if not converts_to(value, self.layout.dtype):
            rules.refuse_element(self, argument(value))
        self.write(Call.here("t[i, j] = x"), value, where, current_thread("shared").thread_id)

    def _element(self, index: Any) -> tuple[int, int]:
        rules.index_of_tile(argument(index))
        row, col = (operator.index(i) for i in index)
        if not (0 <= row < self.layout.rows and 0 <= col < self.layout.cols):
            raise IndexError(f"{self} (made at {self.origin.site}) has no element {(row, col)}")
        return row, col


class Stack(operands.StackOperand):
    """Tiles of one layout, one behind another: ``stack[s]``.

    Parameters
    ----------
    tiles : list of Tile
        All stages.
    """

    def __init__(self, tiles: list[Tile]):
        first = tiles[0]
        super().__init__(first.layout, len(tiles), first.per_product)
        self.origin = first.origin
        self._tiles = tiles

    def __len__(self) -> int:
        return self.stages

    def __getitem__(self, index: Any) -> Tile:
        rules.index_of_stack(argument(index))
        stage = operator.index(index)
        if not 0 <= stage < self.stages:
            raise IndexError(f"{self} (made at {self.origin.site}) are numbered 0 to {self.stages - 1}, got {stage}")
        return self._tiles[stage]


def _threads(first: int, count: int) -> str:
    return f"thread {first}" if count == 1 else f"threads {first}-{first + count - 1}"


class PlainMatrix:
    """A ``cuda.shared.array`` in the place of a tile. Nothing is known of who accessed it.

    Parameters
    ----------
    array : numpy.ndarray
        2-D of at least the tile's lines, each a run of elements; or 1-D and dense.
    layout : TileLayout
        Of the tile; its leading dimension does not count.
    """

    def __init__(self, array: np.ndarray, layout: TileLayout):
        lines, length = layout.lines, layout.line_length
        matrix = array[: lines * length].reshape(lines, length) if array.ndim == 1 else array[:lines, :length]
        self.layout = layout
        self._matrix = matrix if layout.order == "row" else matrix.T

    @property
    def identity(self) -> int:
        """Address of the memory: each thread has a view of its own."""
        return self._matrix.ctypes.data

    def read(self, call: Call, where: Any = WHOLE, thread: Any = ANY) -> Any:
        return self._matrix[where].copy()

    def write(self, call: Call, values: Any, where: Any = WHOLE, thread: Any = ANY) -> None:
        self._matrix[where] = convert(values, self._matrix.dtype)


def matrix_of(operand: str, layout: TileLayout, value: Any) -> Tile | PlainMatrix:
    """A tile, or a plain array in shared memory that can hold the lines of `layout`."""
    if isinstance(value, Tile):
        return value
    array = unwrap(value)
    plain_array_rules.plain_array(
        operand, "shared", plain_array_rules.extents_of(layout, array.ndim), space_of(value), array.shape
    )
    if not array.flags.c_contiguous:
        plain_array_rules.plain_lines(operand, layout, array.strides)
    return PlainMatrix(array, layout)
