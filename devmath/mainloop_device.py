"""Verbs of whole matrix products in one kernel: `tiles` and `mainloop`."""

from typing import Any

from .blas_device import Gemm
from .verbs import Verb


@Verb
def tiles(desc: Gemm, a: Any, b: Any, c: Any) -> Any:
    """Iterate over the tiles of C that this block computes: ``for t in devmath.tiles(mm, a, b, c)``.

    ``t.row`` and ``t.col`` are the position of the tile's first element in C. Blocks share the tiles, whatever the size
    of the grid; ``mm.grid(m, n)`` fills the GPU. Every tile must have its `mainloop`, and the loop must run to its end:
    operands of the next tiles are under way.

    Parameters
    ----------
    desc : Gemm
        With ``mainloop=True``; its extents are those of a tile.
    a, b, c : array
        The matrices: (m, k), (k, n) and (m, n), of any size. Those that ``mm.operands(a, b, c)`` returned on the host
        are copied by the fastest way; any other array works as well.

    Raises
    ------
    TypingError
        If an operand is of the wrong dtype, or made by the ``operands`` of another descriptor.

    Notes
    -----
    Every thread of the block calls it, once a kernel. On some targets a part of the block only loads operands and does
    not return from the call: a barrier of the whole block has no place after it.
    """


@Verb
def mainloop(desc: Gemm, t: Any, acc: Any) -> Any:
    """Multiply a tile: ``acc = a[t rows, :] @ b[:, t columns]``, over the whole depth; once a tile.

    Parameters
    ----------
    desc : Gemm
    t : tile
        Of `devmath.tiles`.
    acc : accumulator
        Of `desc`; what it holds is replaced.
    """
