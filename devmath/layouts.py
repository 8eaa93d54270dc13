"""Where the elements of a shared-memory tile lie: order, leading dimension, swizzle."""

from dataclasses import dataclass, replace
from typing import Any

from .dtypes import DType

CHUNK_BYTES = 16  # the widest access to shared memory, and the unit of every swizzle


def round_up(extent: int, unit: int) -> int:
    """Return the least multiple of `unit` that is not below `extent`."""
    return -(-extent // unit) * unit


@dataclass(frozen=True)
class TileLayout:
    """Placement of a ``rows x cols`` tile in shared memory.

    A tile is a stack of *lines*: rows where ``order`` is "row", columns where it is "col". Line ``l`` starts ``l * ld``
    elements after the base; inside a line the elements are consecutive, except that a swizzle permutes its 16-byte
    chunks. Where a line is longer than `ld` it is cut into *panels* of `ld` elements, which follow each other: panel
    ``p`` of line ``l`` lies where a line ``l + p * lines_allocated`` would.

    Parameters
    ----------
    dtype : DType
        Element type.
    rows, cols : int
        Extents of the tile, in elements.
    order : {"row", "col"}
        Which index runs along a line: the column ("row") or the row ("col").
    ld : int
        Elements from one line to the next: at least the length of a line, or the width of a panel.
    lines_allocated : int
        Lines that memory is set aside for in each panel: at least the number of lines; whole-instruction reads may
        touch the surplus.
    swizzle : {0, 2, 4, 8}
        0 for none. Otherwise chunk ``c`` of line ``l`` lies at chunk ``c ^ (l // (8 // swizzle) % swizzle)``: the
        pattern that the hardware names 32-, 64- and 128-byte swizzle for lines of just that length, `ld`.
    copies : int, optional
        Tiles that memory is set aside for, one after another; those after the first are a variant's scratch memory.
    """

    dtype: DType
    rows: int
    cols: int
    order: str
    ld: int
    lines_allocated: int
    swizzle: int = 0
    copies: int = 1

    @property
    def lines(self) -> int:
        """Number of lines that hold elements of the tile."""
        return self.rows if self.order == "row" else self.cols

    @property
    def line_length(self) -> int:
        """Elements of a line."""
        return self.cols if self.order == "row" else self.rows

    @property
    def panels(self) -> int:
        """Number of panels that a line is cut into."""
        return -(-self.line_length // self.ld)

    @property
    def size_bytes(self) -> int:
        """Shared memory that the tile takes."""
        return self.copies * self.panels * self.lines_allocated * self.ld * self.dtype.itemsize

    @property
    def alignment_bytes(self) -> int:
        """What the base must be a multiple of: the swizzle pattern, or a line of all banks."""
        return max(self.swizzle * 128, 128)

    @property
    def stage_bytes(self) -> int:
        """Bytes from one tile of a stack to the next, which is aligned as well."""
        return round_up(self.size_bytes, self.alignment_bytes)

    def can_serve_as(self, wanted: "TileLayout") -> bool:
        """Whether a tile of this layout is also one of `wanted`: elements in the same places, no less memory."""
        if self.panels > 1 or self.copies > 1:
            return self == wanted  # `lines_allocated` says where the second panel, or copy, starts
        same = replace(self, lines_allocated=wanted.lines_allocated) == wanted
        return same and self.lines_allocated >= wanted.lines_allocated

    def offset(self, row: Any, col: Any) -> Any:
        """Elements from the base to element (row, col); integers or integer arrays."""
        line, position = (row, col) if self.order == "row" else (col, row)
        if self.panels > 1:
            line, position = line + position // self.ld * self.lines_allocated, position % self.ld
        if self.swizzle:
            chunk_length = CHUNK_BYTES // self.dtype.itemsize
            chunk = position // chunk_length ^ (line // (8 // self.swizzle)) % self.swizzle
            position = chunk * chunk_length + position % chunk_length
        return line * self.ld + position


@dataclass(frozen=True)
class TilePerProduct:
    """Tiles of one layout, one for each of the products that a block computes side by side.

    Parameters
    ----------
    threads : int
        Threads that share a product, and its tile: rank ``r`` of the block has tile ``r // threads``.
    count : int
        Number of tiles.
    stride_bytes : int
        From one tile to the next.
    """

    threads: int
    count: int
    stride_bytes: int

    @property
    def size_bytes(self) -> int:
        """Shared memory that all of them take, in whole lines of all banks, so that another set may follow."""
        return round_up(self.count * self.stride_bytes, 128)
