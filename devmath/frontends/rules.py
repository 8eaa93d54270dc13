"""Which calls of a verb are right, and the sentence for each that is not: the same for every front end.

A front end says what each argument is by one of the `operands`, a compiler from its types, the simulator from values.
A rule returns the descriptor of the call where there is one, and raises where the call is wrong.
"""

from typing import Any, NoReturn

from numba.core import errors as numba_errors
from numba.cuda.core import errors as numba_cuda_errors

from ..blas_device import Gemm, Operand
from ..dtypes import BY_NAME, DType
from ..fft_device import FFT
from ..layouts import TileLayout
from ..lto.gemm_plan import GemmPlan
from .operands import Argument, ArrayOperand, FragmentOperand, OtherOperand, TileOperand, VectorOperand


class TypingError(numba_cuda_errors.TypingError, numba_errors.TypingError):
    """A call in a kernel is wrong: Numba's own error, of both its packages, whichever a caller catches."""


def _is(argument: Argument, *kinds: str) -> bool:
    return isinstance(argument, OtherOperand) and argument.kind in kinds


def converts_to(argument: Argument, dtype: DType) -> bool:
    """True for a number, but for a complex one to a real type, and for a fraction to an integer type."""
    kinds = ("integer", *(("real",) if not dtype.is_integer else ()), *(("complex",) if dtype.is_complex else ()))
    return _is(argument, *kinds)


def _number(dtype: DType) -> str:
    return f"{'an integer' if dtype.is_integer else 'a number'} that converts to {dtype.name}"


# The verbs.

_NAMES = {Gemm: "a devmath.Gemm", FFT: "a devmath.FFT", Operand: "mm.a, mm.b or mm.c of a devmath.Gemm"}
_FIRST_ARGUMENT: dict[str, tuple[type, ...]] = {
    "shared": (Operand, FFT),
    "accumulator": (Gemm,),
    "row_vector": (Gemm,),
    "col_vector": (Gemm,),
    "gemm": (Gemm,),
    "gemm_index": (Gemm,),
    "wait": (Gemm,),
    "registers": (FFT,),
    "transform_index": (FFT,),
    "fft": (FFT,),
}


def _refuse(verb: str, operand: str, rule: str, got: Argument) -> NoReturn:
    raise TypingError(f"devmath.{verb}: {operand} must be {rule}, got {got}")


def descriptor(verb: str, argument: Argument) -> Any:
    """The descriptor, or the operand of one, that the first argument of a verb must be."""
    classes = _FIRST_ARGUMENT[verb]
    if not isinstance(argument, classes):
        _refuse(verb, "its first argument", " or ".join(_NAMES[cls] for cls in classes), argument)
    return argument


def plan(verb: str, mm: Gemm, arch: str | None) -> GemmPlan:
    """The plan of a product on a target, which must have the variant that the descriptor forces."""
    try:
        return mm.plan_on(arch)
    except ValueError as error:
        raise TypingError(f"devmath.{verb}: {error}") from error


def shared(desc: Argument, arch: str | None = None) -> TileLayout:
    """An operand, or a transform: the placement of its tile."""
    value = descriptor("shared", desc)
    return getattr(plan("shared", value.desc, arch), value.name) if isinstance(value, Operand) else value.layout


def accumulator(desc: Argument, arch: str | None = None, verb: str = "accumulator") -> Gemm:
    """A product whose accumulators must fit into registers."""
    mm = descriptor(verb, desc)
    if problem := plan(verb, mm, arch).register_form_problem:
        raise TypingError(f"devmath.{verb}: {problem}")
    return mm


def gemm(desc: Argument, *operands: Argument, arch: str | None = None) -> Gemm:
    """A product of tiles, (alpha, a, b, beta, c), or into registers, (a, b, acc), then with A in registers as well."""
    mm = descriptor("gemm", desc)
    planned = plan("gemm", mm, arch)
    if len(operands) == 5:
        alpha, a, b, beta, c = operands
        for name, factor in (("alpha", alpha), ("beta", beta)):
            if not converts_to(factor, planned.accumulator):
                _refuse("gemm", name, _number(planned.accumulator), factor)
        _matrix("c", mm, planned.c, c)
    elif len(operands) == 3:
        a, b, acc = operands
        _accumulators(FragmentOperand(accumulator(desc, arch, "gemm"), arch), acc)
    else:
        raise TypingError(
            f"devmath.gemm takes (desc, alpha, a, b, beta, c) or (desc, a, b, acc), got {len(operands) + 1} arguments"
        )
    if len(operands) == 3 and isinstance(a, FragmentOperand):
        _registers_of_a(mm, planned, a)
    else:
        _matrix("a", mm, planned.a, a)
    _matrix("b", mm, planned.b, b)
    return mm


def _registers_of_a(mm: Gemm, planned: GemmPlan, a: FragmentOperand) -> None:
    """Accept the accumulator of another product, or what it was converted to, of the extents and the type of A."""
    if mm.execution != "block":
        _refuse("gemm", "a", f"a tile where execution is {mm.execution!r}", a)
    shape, dtype = (mm.m, mm.k), planned.a.dtype
    if a.is_transform or (a.map.rows, a.map.cols) != shape or a.dtype != dtype:
        _refuse("gemm", "a", f"a tile, or an accumulator of shape {shape} converted to {dtype.name}", a)


def _matrix(name: str, mm: Gemm, layout: TileLayout, argument: Argument) -> None:
    """Accept a tile of just this placement, or a plain array that can hold it; for A and B one of the whole block."""
    wanted = TileOperand(layout)
    if isinstance(argument, TileOperand):
        if (argument.per_product or name == "c") and not _is_of_each_product(argument, mm):
            _refuse("gemm", name, f"devmath.shared(mm.{name}) of {mm!r}", argument)
        if not argument.layout.can_serve_as(layout):
            _refuse("gemm", name, f"{wanted} with the layout of this descriptor", argument)
    elif not _has_lines(argument, layout.dtype):
        _refuse("gemm", name, f"{wanted}, or a 1-D or 2-D C-ordered cuda.shared.array of that dtype", argument)


def _is_of_each_product(tile: TileOperand, desc: Gemm | FFT) -> bool:
    """Whether just the threads that share a product, or those of the block, have this tile."""
    if isinstance(desc, FFT) or desc.execution == "block":
        return tile.per_product is None
    return tile.per_product is not None and tile.per_product.threads == desc.threads_per_gemm


def _is_dense(argument: Argument, dtype: DType, *dimensions: int) -> bool:
    """Whether an argument is a C-ordered array, as must be what stands in for a tile or a fragment."""
    if not isinstance(argument, ArrayOperand) or argument.layout != "C":
        return False
    return argument.dtype == dtype.name and argument.ndim in dimensions


def _has_lines(argument: Argument, dtype: DType) -> bool:
    """Whether an array may stand in for a tile: C-ordered, or a 2-D view, whose lines are still to be checked."""
    if not isinstance(argument, ArrayOperand) or argument.dtype != dtype.name:
        return False
    return (argument.ndim, argument.layout) in {(1, "C"), (2, "C"), (2, "A")}


def _accumulators(wanted: FragmentOperand, argument: Argument) -> None:
    """Accept the registers of a product that deals out its sums alike, or a plain array."""
    if isinstance(argument, FragmentOperand) and (argument.map, argument.dtype) == (wanted.map, wanted.dtype):
        return
    if not _is_dense(argument, wanted.dtype, 1):
        rule = f"devmath.accumulator({wanted.desc!r}), or a 1-D cuda.local.array of {wanted.dtype.name}"
        _refuse("gemm", "acc", rule, argument)


def fft(desc: Argument, data: Argument) -> FFT:
    """A transform of registers, of a tile or of a plain array."""
    transform = descriptor("fft", desc)
    wanted = TileOperand(transform.layout)
    if isinstance(data, FragmentOperand):
        if data.desc != transform.forward:
            _refuse("fft", "data", f"devmath.registers({transform.forward!r})", data)
    elif isinstance(data, TileOperand):
        same = (data.shape, data.dtype, data.layout.order) == (wanted.shape, wanted.dtype, wanted.layout.order)
        if data.per_product or not same:
            _refuse("fft", "data", str(wanted), data)
    elif not _has_lines(data, wanted.dtype):
        rule = f"registers or a tile of {transform!r}, or a 1-D or 2-D C-ordered array of {wanted.dtype.name}"
        _refuse("fft", "data", rule, data)
    return transform


def load(source: Argument, target: Argument, *row: Argument) -> None:
    """Accept an array of the target's dtype, for a tile or the registers of a transform; more for an accumulator."""
    if not isinstance(target, TileOperand | FragmentOperand):
        _refuse("load", "target", "a tile, an accumulator or registers", target)
    if isinstance(target, FragmentOperand) and not target.is_transform:
        _load_accumulator(source, target, *row)
    else:
        _array("load", "source", source, _dimensions(target, row), (target.dtype.name,))
    _row("load", target, row, isinstance(source, ArrayOperand))


def _load_accumulator(source: Argument, target: FragmentOperand, *index: Argument) -> None:
    """Accept an array that converts, or a tile of just its shape."""
    dtypes = tuple(name for name, row in BY_NAME.items() if row.converts_to(target.dtype))
    if isinstance(source, TileOperand):
        _same_shape("load", "source", source, target, dtypes)
    else:
        _array("load", "source", source, _dimensions(target, index), dtypes)


def store(source: Argument, target: Argument, *row: Argument) -> None:
    """Accept a tile, an accumulator or registers, and an array that converts; for an accumulator a tile as well."""
    if not isinstance(source, TileOperand | FragmentOperand):
        _refuse("store", "source", "a tile, an accumulator or registers", source)
    if isinstance(source, FragmentOperand) and source.is_transform:
        _array("store", "target", target, (1, 2), (source.dtype.name,))
    elif isinstance(source, FragmentOperand) and isinstance(target, TileOperand):
        _same_shape("store", "target", target, source, convertible(source.dtype))
    else:
        _array("store", "target", target, _dimensions(source, row), convertible(source.dtype))
    _row("store", source, row, isinstance(target, ArrayOperand))


def _dimensions(data: TileOperand | FragmentOperand, index: tuple[Argument, ...]) -> tuple[int, ...]:
    """Dimensions of an array that is copied to or from: a matrix, or a batch of them where there is an index."""
    if isinstance(data, FragmentOperand) and data.is_transform:
        return (1, 2)
    return (3,) if index else (2,)


def convertible(dtype: DType) -> tuple[str, ...]:
    """Types that elements convert to."""
    return tuple(name for name, row in BY_NAME.items() if dtype.converts_to(row))


def _same_shape(verb: str, name: str, tile: TileOperand, acc: FragmentOperand, dtypes: tuple[str, ...]) -> None:
    """Accept a tile that holds just the elements of an accumulator, of one of `dtypes`."""
    shape = (acc.map.rows, acc.map.cols)
    if tile.shape != shape or tile.dtype.name not in dtypes:
        _refuse(verb, name, f"an array, or a tile {shape} of {' or '.join(dtypes)}", tile)
    if isinstance(acc.desc, Gemm) and not _is_of_each_product(tile, acc.desc):
        _refuse(verb, name, f"devmath.shared(mm.c) of {acc.desc!r}", tile)


def _array(verb: str, name: str, argument: Argument, dimensions: tuple[int, ...], dtypes: tuple[str, ...]) -> None:
    """Accept an array of the right dimensions and element type, writable where it is stored to."""
    rule = f"a {' or '.join(f'{n}-D' for n in dimensions)} array of {' or '.join(dtypes)}"
    if dimensions == (3,):
        rule += ", as an index follows"
    if not isinstance(argument, ArrayOperand) or argument.ndim not in dimensions or argument.dtype not in dtypes:
        _refuse(verb, name, rule, argument)
    if verb == "store" and not argument.writable:
        _refuse(verb, name, f"{rule} that may be written", argument)


def _row(verb: str, data: TileOperand | FragmentOperand, row: tuple[Argument, ...], is_array: bool = True) -> None:
    """Accept one integer: the row of a transform's registers, or the index into a batch of matrices."""
    if isinstance(data, FragmentOperand) and data.is_transform:
        if len(row) != 1 or not _is(row[0], "integer"):
            raise TypingError(
                f"devmath.{verb}: the registers of a transform take one more argument, the row: an integer"
            )
    elif row and not is_array:
        raise TypingError(f"devmath.{verb}: only a 3-D array takes an index, got {len(row)} more arguments for a tile")
    elif row and (len(row) != 1 or not _is(row[0], "integer")):
        raise TypingError(f"devmath.{verb}: a 3-D array takes one more argument, the index: an integer")


def apply(function: Argument, acc: Argument) -> None:
    """Accept a device function and an accumulator."""
    if not isinstance(acc, FragmentOperand) or acc.is_transform:
        _refuse("apply", "acc", "a devmath.accumulator, or a row or column vector", acc)
    device_function(function)


def device_function(function: Argument) -> None:
    """Accept what `apply` can call."""
    if not _is(function, "device function"):
        _refuse("apply", "function", "a @cuda.jit(device=True) function", function)


def refuse_result(acc: FragmentOperand | VectorOperand, result: Argument) -> NoReturn:
    """Say that what a function of `devmath.apply` returned does not convert to an element."""
    _refuse("apply", "the result of function", _number(acc.dtype), result)


# Elements of tiles and fragments.


def index_of_tile(index: Argument) -> None:
    """Accept two integers."""
    items = index.items if isinstance(index, OtherOperand) else ()
    if len(items) != 2 or not all(_is(item, "integer") for item in items):
        raise TypingError(f"a tile takes two integers, t[i, j], got t[{index}]")


def index_of_stack(index: Argument) -> None:
    """Accept one integer."""
    if not _is(index, "integer"):
        raise TypingError(f"stages of a tile take one integer, stack[s], got stack[{index}]")


def index_of_fragment(index: Argument) -> None:
    """Accept one integer."""
    if not _is(index, "integer"):
        raise TypingError(f"an accumulator or registers take one integer, acc[i], got acc[{index}]")


def refuse_element(holder: TileOperand | FragmentOperand | VectorOperand, value: Argument) -> NoReturn:
    """Say that a value does not convert to an element."""
    raise TypingError(f"{holder} holds {holder.dtype.name}, got a value of type {value}")


def register(fragment: FragmentOperand, name: str, *arguments: Argument) -> None:
    """Accept the one argument of ``acc.row(i)`` and its like; an accumulator has no ``index(i)``."""
    if name == "index" and not fragment.is_transform:
        raise TypingError(f"index(i) is of the registers of a transform, got {fragment}: use row(i) and col(i)")
    if len(arguments) != 1 or not _is(arguments[0], "integer"):
        raise TypingError(f"{name}(i) takes one integer, the number of a register")


def grid(desc: Argument, *arguments: Argument) -> None:
    """Accept ``fft.grid(count)`` and ``mm.grid(count)`` in a kernel."""
    if not isinstance(desc, FFT | Gemm):
        raise TypingError(f"grid(count) is of a devmath.FFT or a devmath.Gemm, got {desc}")
    if len(arguments) != 1 or not _is(arguments[0], "integer"):
        raise TypingError("grid(count) takes one integer, the number of transforms or products")
