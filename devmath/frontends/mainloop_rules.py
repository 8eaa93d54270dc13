"""Which uses of a mainloop are right, in kernels and on the host: the same for every front end."""

from collections.abc import Sequence
from typing import Any

from ..blas_device import Gemm
from ..dtypes import lookup
from .operands import Argument, ArrayOperand, FragmentOperand, MappedOperand, TileIndexOperand
from .rules import TypingError, _refuse, store

MAX_EXTENT = 2**31 - 1  # coordinates of TMA, and ours, have 32 bits


# In kernels.


def tiles(desc: Argument, *matrices: Argument, arch: str | None = None) -> Gemm:
    """Accept a descriptor with a mainloop, and three matrices."""
    mm = _descriptor("tiles", desc, arch)
    for name, dtype, matrix in zip("abc", (mm.dtype, mm.b_dtype, None), matrices, strict=True):
        wanted = f"a 2-D array{f' of {dtype}' if dtype else ''}"
        if not isinstance(matrix, ArrayOperand) or matrix.ndim != 2 or (dtype and matrix.dtype != str(dtype)):
            _refuse("tiles", name, wanted, matrix)
        if isinstance(matrix, MappedOperand) and (matrix.desc, matrix.name) != (mm, name):
            _refuse("tiles", name, f"{wanted}, or {name} of the operands of {mm!r}", matrix)
    return mm


def mainloop(desc: Argument, tile: Any, acc: Argument, arch: str | None = None) -> Gemm:
    """Accept a tile of the descriptor, and an accumulator of it."""
    mm = _descriptor("mainloop", desc, arch)
    if not isinstance(tile, TileIndexOperand) or tile.desc != mm:
        _refuse("mainloop", "t", f"a tile of devmath.tiles({mm!r})", tile)
    accumulator_of("mainloop", acc, tile, arch)
    if isinstance(acc, FragmentOperand) and acc.converted:
        _refuse("mainloop", "acc", f"devmath.accumulator({mm!r})", acc)
    return mm


def _descriptor(verb: str, desc: Argument, arch: str | None) -> Gemm:
    if not isinstance(desc, Gemm) or not desc.mainloop:
        _refuse(verb, "its first argument", "a devmath.Gemm with mainloop=True", desc)
    try:
        desc.mainloop_on(arch)
    except ValueError as error:
        raise TypingError(f"devmath.{verb}: {error}") from error
    return desc


def accumulator_of(verb: str, acc: Argument, tile: TileIndexOperand, arch: str | None = None) -> None:
    """Accept an accumulator that holds its elements as that of the tile's descriptor does."""
    wanted = FragmentOperand(tile.desc, arch)
    if not isinstance(acc, FragmentOperand) or acc.is_transform or acc.map != wanted.map:
        _refuse(verb, "acc", f"devmath.accumulator({tile.desc!r})", acc)


def store_at(source: Argument, target: Argument, tile: TileIndexOperand, arch: str | None = None) -> None:
    """Accept an accumulator of the tile's descriptor, and an array that converts."""
    accumulator_of("store", source, tile, arch)
    store(source, target)
    if not isinstance(target, ArrayOperand):
        _refuse("store", "target", "an array where the place of the tile is given", target)


def one_loop_a_kernel(is_kernel: bool, has_one: bool) -> None:
    """Refuse `devmath.tiles` in a device function, and a second one."""
    if not is_kernel:
        raise TypingError("devmath.tiles must be called in the kernel itself, got a call in a device function")
    if has_one:
        raise TypingError("devmath.tiles must be called once a kernel, got a second call")


# On the host.


def operands(mm: Gemm, dtypes: Sequence[Any], shapes: Sequence[tuple[int, ...]]) -> None:
    """Accept three matrices whose dtypes and shapes fit the descriptor and each other."""
    if not mm.mainloop:
        raise ValueError(f"operands are of a descriptor with mainloop=True, got {mm!r}")
    for name, dtype, shape in zip("abc", dtypes, shapes, strict=True):
        if len(shape) != 2:
            raise ValueError(f"{name} must have two dimensions, got shape {tuple(shape)}")
        if name != "c" and dtype != (wanted := mm.dtype if name == "a" else mm.b_dtype):
            raise TypeError(f"{name} must be an array of {wanted}, got {dtype}")
        if max(shape) > MAX_EXTENT:
            raise ValueError(f"{name} must have extents of at most {MAX_EXTENT}, got shape {tuple(shape)}")
    lookup(dtypes[2], "the dtype of c")
    (m, k), (depth, n), result = shapes
    if depth != k:
        raise ValueError(f"b must have {k} rows, the columns of a, got shape {tuple(shapes[1])}")
    if tuple(result) != (m, n):
        raise ValueError(f"c must have shape {(m, n)}, rows of a and columns of b, got {tuple(result)}")


def order_of(name: str, order: str, shape: tuple[int, ...], strides_bytes: tuple[int, ...], itemsize: int) -> None:
    """Accept a matrix whose elements are neighbours along its rows ("row") or its columns ("col")."""
    along = 1 if order == "row" else 0
    if shape[along] > 1 and min(shape) > 0 and strides_bytes[along] != itemsize:
        raise ValueError(
            f"{name} must be {order}-ordered, its stride along {'columns' if along else 'rows'} {itemsize} bytes,"
            f" got strides {tuple(strides_bytes)}: set {name}_order, or pass another layout"
        )
