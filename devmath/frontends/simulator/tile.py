"""Matrices in shared memory: tiles, which know who accessed them, and plain arrays, which do not."""

import functools
import operator
from typing import Any

import numpy as np

from ...errors import SimulationError
from ...layouts import TileLayout
from .. import plain_array_rules, rules
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


class Tile(rules.TileOperand):
    """A matrix in the shared memory of a block, with its real layout, paddings included; NaN until it is written.

    Parameters
    ----------
    block : Block
        The block whose memory it is.
    layout : TileLayout
        Placement of its elements.
    origin : Call
        The `devmath.shared` that made it.
    """

    def __init__(self, block: Block, layout: TileLayout, origin: Call):
        super().__init__(layout)
        self.origin = origin
        self._block = block
        self._memory = poisoned(layout.size_bytes // layout.dtype.itemsize, layout.dtype)
        self._reads, self._writes = Accesses(self.shape), Accesses(self.shape)

    @property
    def identity(self) -> int:
        """Tells one tile from another."""
        return id(self)

    def read(self, call: Call, where: Any = WHOLE, thread: Any = ANY) -> Any:
        """Elements at `where`, read by `thread`: a rank, a rank for each of them, or any thread of the block."""
        with self._block.lock:
            self._require_order(self._writes, call, "reads", "wrote", where, thread)
            self._reads.record(where, self._block.epoch, thread, call)
            return self._memory[offsets(self.layout)[where]]

    def write(self, call: Call, values: Any, where: Any = WHOLE, thread: Any = ANY, landing: bool = False) -> None:
        """Set the elements at `where`; where it is `landing` they are not there before `devmath.wait` says so."""
        with self._block.lock:
            self._require_order(self._writes, call, "writes", "wrote", where, thread)
            self._require_order(self._reads, call, "writes", "may still read", where, thread)
            self._writes.record(where, LANDING if landing else self._block.epoch, thread, call)
            self._memory[offsets(self.layout)[where]] = convert(values, self.layout.dtype.numpy)

    def land(self) -> None:
        """Complete the asynchronous writes."""
        self._writes.land(self._block.epoch)

    def _require_order(self, earlier: Accesses, call: Call, does: str, did: str, where: Any, thread: Any) -> None:
        unordered = earlier.unordered(where, self._block.epoch, thread)
        if not np.any(unordered):
            return
        shape = np.shape(unordered)
        first = tuple(int(i[0]) for i in np.nonzero(unordered)) if shape else ()
        rows, cols = (np.broadcast_to(index[where], shape) for index in np.indices(self.shape))
        element = int(rows[first]), int(cols[first])
        raise SimulationError(
            f"{call} by {who(int(np.broadcast_to(thread, shape)[first]))} {does} element {element} of {self} (made at"
            f" {self.origin.site}), which {earlier.describe(element)} {did}: {self._remedy()} must come between"
        )

    def _remedy(self) -> str:
        """The `devmath.wait` that lands what is on its way to this tile, or else a barrier."""
        landing = self._block.landing
        newer = len(landing) - 1 - landing.index(self) if self in landing else 0
        return f"devmath.wait(pending={newer}), or less," if newer else "devmath.wait()"

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


class Stack(rules.StackOperand):
    """Tiles of one layout, one behind another: ``stack[s]``.

    Parameters
    ----------
    block : Block
        The block whose memory it is.
    layout : TileLayout
        Placement of the elements of each tile.
    stages : int
        Number of tiles.
    origin : Call
        The `devmath.shared` that made it.
    """

    def __init__(self, block: Block, layout: TileLayout, stages: int, origin: Call):
        super().__init__(layout, stages)
        self.origin = origin
        self._tiles = [Tile(block, layout, origin) for _ in range(stages)]

    def __len__(self) -> int:
        return self.stages

    def __getitem__(self, index: Any) -> Tile:
        rules.index_of_stack(argument(index))
        stage = operator.index(index)
        if not 0 <= stage < self.stages:
            raise IndexError(f"{self} (made at {self.origin.site}) are numbered 0 to {self.stages - 1}, got {stage}")
        return self._tiles[stage]


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
