"""Which calls of a verb are right, and the sentence for each that is not: those of the compiling front end."""

from typing import Any, NoReturn

import numpy as np
from numba.cuda.core.errors import TypingError
from numba.cuda.simulator.kernel import FakeCUDAKernel

from ...blas_device import Gemm, Operand
from ...dtypes import BY_NAME, DType
from ...fft_device import FFT
from ...layouts import TileLayout
from .fragment import Fragment
from .tile import PlainMatrix, Tile
from .values import array_of, convert, converts_to, describe, element_name, is_c_ordered, is_integer, space_of

_NAMES = {Gemm: "a devmath.Gemm", FFT: "a devmath.FFT", Operand: "mm.a, mm.b or mm.c of a devmath.Gemm"}


def refuse(verb: str, operand: str, rule: str, got: Any) -> NoReturn:
    """Raise the error of an operand that is not what it must be."""
    raise TypingError(f"devmath.{verb}: {operand} must be {rule}, got {describe(got)}")


def descriptor(verb: str, value: Any, *classes: type) -> Any:
    """The descriptor that an argument is, of one of `classes`."""
    if not isinstance(value, classes):
        refuse(verb, "its first argument", " or ".join(_NAMES[cls] for cls in classes), value)
    return value


def register_form(verb: str, mm: Gemm) -> None:
    """Refuse a product whose accumulators are too large for registers."""
    if problem := mm.plan.register_form_problem:
        raise TypingError(f"devmath.{verb}: {problem}")


def matrix(verb: str, operand: str, layout: TileLayout, value: Any) -> Tile | PlainMatrix:
    """A tile of just this layout, or a plain array in shared memory that can hold it."""
    if isinstance(value, Tile) and value.layout == layout:
        return value
    rule = f"a tile ({layout.rows}, {layout.cols}) of {layout.dtype.name}, order {layout.order!r}"
    if isinstance(value, Tile):
        refuse(verb, operand, rule + " with the layout of this descriptor", value)
    array = array_of(value)
    if array is None or array.ndim not in (1, 2) or not is_c_ordered(array) or element_name(array) != layout.dtype.name:
        refuse(verb, operand, f"{rule}, or a 1-D or 2-D C-ordered cuda.shared.array of that dtype", value)
    extents = (layout.lines, layout.line_length) if array.ndim == 2 else (layout.lines * layout.line_length,)
    _require(f"devmath.{verb}: {operand}", value, array, "shared", extents)
    return PlainMatrix(array, layout)


def _require(operand: str, value: Any, array: np.ndarray, space: str, extents: tuple[int, ...]) -> None:
    """Refuse an array outside `space`, or smaller than `extents`."""
    if space_of(value) != space:
        raise TypingError(f"{operand} must lie in {space} memory, got an array in {space_of(value)} memory")
    if any(have < want for have, want in zip(array.shape, extents, strict=True)):
        raise TypingError(f"{operand} must have at least the extents {extents}, got {array.shape}")


def accumulators(mm: Gemm, value: Any) -> np.ndarray:
    """The registers of an accumulator, or a plain array in local memory in their place."""
    fragment, dtype = mm.plan.fragment, mm.accumulator_dtype.name
    if isinstance(value, Fragment) and value.map == fragment and value.dtype.name == dtype:
        return value.values
    array = array_of(value)
    if array is None or array.ndim != 1 or not is_c_ordered(array) or element_name(array) != dtype:
        refuse("gemm", "acc", f"devmath.accumulator({mm!r}), or a 1-D cuda.local.array of {dtype}", value)
    _require("devmath.gemm: acc", value, array, "local", (fragment.size,))
    return array[: fragment.size]


def scalar(verb: str, operand: str, dtype: DType, value: Any) -> Any:
    """A number, rounded to the accumulator's type."""
    if not converts_to(value, dtype):
        refuse(verb, operand, f"a number that converts to {dtype.name}", value)
    return convert(value, dtype.numpy)[()]


def transform_data(desc: FFT, value: Any) -> np.ndarray | Tile | PlainMatrix:
    """What a transform works on: registers, as an array, or a matrix of the block's transforms."""
    dtype = desc.dtype.name
    if isinstance(value, Fragment):
        if value.desc != desc.forward:
            refuse("fft", "data", f"devmath.registers({desc.forward!r})", value)
        return value.values
    if isinstance(value, Tile):
        layout = value.layout
        if value.shape != (desc.ffts_per_block, desc.n) or layout.dtype.name != dtype or layout.order != "row":
            refuse("fft", "data", f"a tile ({desc.ffts_per_block}, {desc.n}) of {dtype}, order 'row'", value)
        return value
    array = array_of(value)
    if array is None or array.ndim not in (1, 2) or not is_c_ordered(array) or element_name(array) != dtype:
        refuse("fft", "data", f"registers or a tile of {desc!r}, or a 1-D or 2-D C-ordered array of {dtype}", value)
    if array.ndim == 1 and space_of(value) == "local":
        _require("devmath.fft: data", value, array, "local", (desc.elements_per_thread,))
        return array[: desc.elements_per_thread]
    return matrix("fft", "data", desc.layout, value)


def load_operands(source: Any, target: Any, row: tuple[Any, ...]) -> tuple[np.ndarray, int]:
    """The array to load from, 2-D, and the row; the row of a tile is 0."""
    if not isinstance(target, Tile | Fragment):
        refuse("load", "target", "a tile or registers", target)
    if isinstance(target, Fragment) and not isinstance(target.desc, FFT):
        refuse("load", "target", "a tile, or the registers of a transform", target)
    dtype = target.layout.dtype if isinstance(target, Tile) else target.dtype
    array = _array("load", "source", source, isinstance(target, Tile), (dtype.name,))
    return array, _row("load", target, row)


def store_operands(source: Any, target: Any, row: tuple[Any, ...]) -> tuple[Any, int]:
    """The tile, or the array, 2-D, to store to, and the row; the row of all but a transform is 0."""
    if not isinstance(source, Tile | Fragment):
        refuse("store", "source", "a tile, an accumulator or registers", source)
    dtype = source.layout.dtype if isinstance(source, Tile) else source.dtype
    convertible = tuple(name for name, entry in BY_NAME.items() if entry.is_complex == dtype.is_complex)
    transform = isinstance(source, Fragment) and isinstance(source.desc, FFT)
    if isinstance(target, Tile) and isinstance(source, Fragment) and not transform:
        shape = (source.map.rows, source.map.cols)
        if target.shape != shape or target.layout.dtype.name not in convertible:
            refuse("store", "target", f"an array, or a tile {shape} of {' or '.join(convertible)}", target)
        destination: Any = target
    else:
        destination = _array("store", "target", target, not transform, (dtype.name,) if transform else convertible)
    return destination, _row("store", source, row)


def _array(verb: str, operand: str, value: Any, two_dimensional: bool, dtypes: tuple[str, ...]) -> np.ndarray:
    """An array of the right dimensions and element type, writable where it is stored to; 2-D, a 1-D one is one row."""
    dimensions = (2,) if two_dimensional else (1, 2)
    rule = f"a {' or '.join(f'{n}-D' for n in dimensions)} array of {' or '.join(dtypes)}"
    array = array_of(value)
    if array is None or array.ndim not in dimensions or element_name(array) not in dtypes:
        refuse(verb, operand, rule, value)
    if verb == "store" and not array.flags.writeable:
        refuse(verb, operand, f"{rule} that may be written", value)
    return array[None, :] if array.ndim == 1 else array


def _row(verb: str, data: Any, row: tuple[Any, ...]) -> int:
    """The row argument: one integer for the registers of a transform, none otherwise."""
    if isinstance(data, Fragment) and isinstance(data.desc, FFT):
        if len(row) != 1 or not is_integer(row[0]):
            raise TypingError(
                f"devmath.{verb}: the registers of a transform take one more argument, the row: an integer"
            )
        return int(row[0])
    if row:
        raise TypingError(
            f"devmath.{verb}: only the registers of a transform take a row, got {len(row)} more arguments"
        )
    return 0


def epilog(function: Any, acc: Any) -> None:
    """Refuse what `devmath.apply` cannot call, or apply to."""
    if not isinstance(acc, Fragment) or not isinstance(acc.desc, Gemm):
        refuse("apply", "acc", "a devmath.accumulator", acc)
    if not isinstance(function, FakeCUDAKernel):
        refuse("apply", "function", "a @cuda.jit(device=True) function", function)
