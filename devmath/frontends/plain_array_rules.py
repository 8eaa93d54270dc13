"""Arrays of the user's own in the place of tiles and fragments: where they must lie, their extents, their strides."""

from ..layouts import TileLayout
from .rules import TypingError


def extents_of(layout: TileLayout, ndim: int) -> tuple[int, ...]:
    """The least extents of a plain array for a tile: 2-D it has the lines of the tile, 1-D it is dense."""
    return (layout.lines, layout.line_length) if ndim == 2 else (layout.lines * layout.line_length,)


def plain_array(
    operand: str, space: str, extents: tuple[int, ...], got_space: str | None, got_extents: tuple[int | None, ...]
) -> str:
    """Refuse an array outside `space`, or smaller than `extents`; what is not known yet is None.

    Returns the rule of the extents, for those that only the running kernel can check.
    """
    if got_space not in (space, None):
        raise TypingError(f"{operand} must lie in {space} memory, got an array in {got_space} memory")
    rule = f"{operand} must have at least the extents {extents}"
    if any(got is not None and got < wanted for got, wanted in zip(got_extents, extents, strict=True)):
        raise TypingError(f"{rule}, got {got_extents}")
    return rule


def plain_lines(operand: str, layout: TileLayout, got_strides: tuple[int | None, ...]) -> str:
    """Refuse a 2-D array whose lines are not runs of elements, one apart from the other; strides in bytes, or None.

    Returns the rule, for strides that only the running kernel can check.
    """
    itemsize = layout.dtype.itemsize
    line, element = got_strides
    rule = f"{operand} must have lines of consecutive elements: strides of at least"
    rule += f" {layout.line_length * itemsize}, and of just {itemsize} bytes"
    line_fits = line is None or (line >= layout.line_length * itemsize and line % itemsize == 0)
    if not line_fits or element not in (itemsize, None):
        raise TypingError(f"{rule}, got {got_strides}")
    return rule
