"""Which calls of a verb are right, and the sentence for each that is not."""

from collections.abc import Callable
from typing import Any, NoReturn

from numba.cuda import types
from numba.cuda.core.errors import TypingError
from numba.cuda.typing.templates import AbstractTemplate, Signature, signature

from ... import blas_device, fft_device, verbs
from ...blas_device import Gemm, Operand
from ...dtypes import BY_NAME
from ...fft_device import FFT
from ...layouts import TileLayout
from ...verbs import Verb
from .types import ConstantType, FragmentType, TileType, describe, element_name, numba_type

#: Numba's type of each verb.
VERB_TYPES: dict[Any, types.Function] = {}


def typed(verb: Verb) -> Callable[[Callable[..., Signature]], Callable[..., Signature]]:
    """Register a function from argument types to a signature as the typing of `verb`."""

    def register(resolve: Callable[..., Signature]) -> Callable[..., Signature]:
        class Template(AbstractTemplate):
            key = verb

            def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature:
                if kws:
                    raise TypingError(f"devmath.{verb.__name__} takes positional arguments only, got {', '.join(kws)}")
                return resolve(self.context, *args)

        VERB_TYPES[verb] = types.Function(Template)
        return resolve

    return register


def refuse(verb: str, operand: str, rule: str, got: types.Type) -> NoReturn:
    """Raise the error of an operand that is not what it must be."""
    raise TypingError(f"devmath.{verb}: {operand} must be {rule}, got {describe(got)}")


def descriptor(verb: str, ty: types.Type, *classes: type) -> Any:
    """The descriptor that an argument is, of one of `classes`."""
    if not (isinstance(ty, ConstantType) and isinstance(ty.value, classes)):
        names = {Gemm: "a devmath.Gemm", FFT: "a devmath.FFT", Operand: "mm.a, mm.b or mm.c of a devmath.Gemm"}
        refuse(verb, "its first argument", " or ".join(names[cls] for cls in classes), ty)
    return ty.value


def check_tile(verb: str, operand: str, layout: TileLayout, ty: types.Type) -> None:
    """Accept a tile of just this placement, or a plain array in shared memory that can hold it."""
    if isinstance(ty, TileType) and ty.layout.can_serve_as(layout):
        return
    shape = f"({layout.rows}, {layout.cols})"
    rule = f"a tile {shape} of {layout.dtype.name}, order {layout.order!r}"
    plain = f"{rule}, or a 1-D or 2-D C-ordered cuda.shared.array of that dtype"
    if isinstance(ty, TileType):
        refuse(verb, operand, rule + " with the layout of this descriptor", ty)
    if not isinstance(ty, types.Array) or ty.ndim not in (1, 2) or ty.layout != "C":
        refuse(verb, operand, plain, ty)
    if ty.dtype != numba_type(layout.dtype):
        refuse(verb, operand, plain, ty)


def check_registers(verb: str, operand: str, what: str, dtype: str, ty: types.Type) -> None:
    """Accept a plain ``cuda.local.array`` in place of a fragment."""
    if not isinstance(ty, types.Array) or ty.ndim != 1 or ty.layout != "C" or element_name(ty) != dtype:
        refuse(verb, operand, f"{what}, or a 1-D cuda.local.array of {dtype}", ty)


def scalar(verb: str, operand: str, dtype: str, ty: types.Type) -> types.Type:
    """The accumulator's type, if `ty` converts to it."""
    if not isinstance(ty, types.Number) or (isinstance(ty, types.Complex) and not BY_NAME[dtype].is_complex):
        refuse(verb, operand, f"a number that converts to {dtype}", ty)
    return numba_type(BY_NAME[dtype])


@typed(verbs.shared)
def type_shared(context: Any, operand: types.Type) -> Signature:
    value = descriptor("shared", operand, Operand, FFT)
    threads = value.desc.threads if isinstance(value, Operand) else value.threads
    return signature(TileType(value.layout, threads), operand)


@typed(blas_device.accumulator)
def type_accumulator(context: Any, desc: types.Type) -> Signature:
    mm = descriptor("accumulator", desc, Gemm)
    if problem := mm.plan.register_form_problem:
        raise TypingError(f"devmath.accumulator: {problem}")
    return signature(FragmentType(mm), desc)


@typed(fft_device.registers)
def type_registers(context: Any, desc: types.Type) -> Signature:
    return signature(FragmentType(descriptor("registers", desc, FFT).forward), desc)


@typed(fft_device.transform_index)
def type_transform_index(context: Any, desc: types.Type) -> Signature:
    descriptor("transform_index", desc, FFT)
    return signature(types.intp, desc)


@typed(verbs.wait)
def type_wait(context: Any) -> Signature:
    return signature(types.none)


@typed(blas_device.gemm)
def type_gemm(context: Any, desc: types.Type, *operands: types.Type) -> Signature:
    mm = descriptor("gemm", desc, Gemm)
    dtype = mm.accumulator_dtype.name
    if len(operands) == 5:
        alpha, a, b, beta, c = operands
        check_tile("gemm", "c", mm.plan.c, c)
        alpha, beta = scalar("gemm", "alpha", dtype, alpha), scalar("gemm", "beta", dtype, beta)
        arguments: tuple[types.Type, ...] = (alpha, a, b, beta, c)
    elif len(operands) == 3:
        a, b, acc = arguments = operands
        if problem := mm.plan.register_form_problem:
            raise TypingError(f"devmath.gemm: {problem}")
        if not (isinstance(acc, FragmentType) and acc.map == mm.plan.fragment and acc.dtype.name == dtype):
            check_registers("gemm", "acc", f"devmath.accumulator({mm!r})", dtype, acc)
    else:
        raise TypingError(
            f"devmath.gemm takes (desc, alpha, a, b, beta, c) or (desc, a, b, acc), got {len(operands) + 1} arguments"
        )
    check_tile("gemm", "a", mm.plan.a, a)
    check_tile("gemm", "b", mm.plan.b, b)
    return signature(types.none, desc, *arguments)


@typed(fft_device.fft)
def type_fft(context: Any, desc: types.Type, data: types.Type) -> Signature:
    transform = descriptor("fft", desc, FFT)
    dtype = transform.dtype.name
    if isinstance(data, FragmentType):
        if not isinstance(data.desc, FFT) or data.desc != transform.forward:
            refuse("fft", "data", f"devmath.registers({transform.forward!r})", data)
    elif isinstance(data, TileType):
        layout = data.layout
        shape = (layout.rows, layout.cols)
        if shape != (transform.ffts_per_block, transform.n) or layout.dtype.name != dtype or layout.order != "row":
            refuse("fft", "data", f"a tile ({transform.ffts_per_block}, {transform.n}) of {dtype}, order 'row'", data)
    elif not (
        isinstance(data, types.Array) and data.ndim in (1, 2) and data.layout == "C" and element_name(data) == dtype
    ):
        rule = f"registers or a tile of {transform!r}, or a 1-D or 2-D C-ordered array of {dtype}"
        refuse("fft", "data", rule, data)
    return signature(types.none, desc, data)


@typed(verbs.load)
def type_load(context: Any, source: types.Type, target: types.Type, *row: types.Type) -> Signature:
    if not isinstance(target, (TileType, FragmentType)):
        refuse("load", "target", "a tile or registers", target)
    if isinstance(target, FragmentType) and not isinstance(target.desc, FFT):
        refuse("load", "target", "a tile, or the registers of a transform", target)
    dtype = target.layout.dtype if isinstance(target, TileType) else target.dtype
    _check_array("load", "source", source, isinstance(target, TileType), (dtype.name,))
    return signature(types.none, source, target, *_check_row("load", target, row))


@typed(verbs.store)
def type_store(context: Any, source: types.Type, target: types.Type, *row: types.Type) -> Signature:
    if not isinstance(source, (TileType, FragmentType)):
        refuse("store", "source", "a tile, an accumulator or registers", source)
    dtype = source.layout.dtype if isinstance(source, TileType) else source.dtype
    convertible = tuple(name for name, row_ in BY_NAME.items() if row_.is_complex == dtype.is_complex)
    transform = isinstance(source, FragmentType) and isinstance(source.desc, FFT)
    if isinstance(target, TileType) and isinstance(source, FragmentType) and not transform:
        shape, layout = (source.map.rows, source.map.cols), target.layout
        if (layout.rows, layout.cols) != shape or layout.dtype.name not in convertible:
            refuse("store", "target", f"an array, or a tile {shape} of {' or '.join(convertible)}", target)
    else:
        allowed = (dtype.name,) if transform else convertible
        _check_array("store", "target", target, not transform, allowed)
    return signature(types.none, source, target, *_check_row("store", source, row))


def _check_array(verb: str, operand: str, ty: types.Type, two_dimensional: bool, dtypes: tuple[str, ...]) -> None:
    """Accept a global array of the right dimensions and element type, writable where it is stored to."""
    dimensions = (2,) if two_dimensional else (1, 2)
    rule = f"a {' or '.join(f'{n}-D' for n in dimensions)} array of {' or '.join(dtypes)}"
    if not isinstance(ty, types.Array) or ty.ndim not in dimensions or element_name(ty) not in dtypes:
        refuse(verb, operand, rule, ty)
    if verb == "store" and not ty.mutable:
        refuse(verb, operand, f"{rule} that may be written", ty)


def _check_row(verb: str, data: types.Type, row: tuple[types.Type, ...]) -> tuple[types.Type, ...]:
    """The row argument: one integer for the registers of a transform, none otherwise."""
    if isinstance(data, FragmentType) and isinstance(data.desc, FFT):
        if len(row) != 1 or not isinstance(row[0], types.Integer):
            raise TypingError(
                f"devmath.{verb}: the registers of a transform take one more argument, the row: an integer"
            )
        return (types.intp,)
    if row:
        raise TypingError(
            f"devmath.{verb}: only the registers of a transform take a row, got {len(row)} more arguments"
        )
    return ()


@typed(verbs.apply)
def type_apply(context: Any, function: types.Type, acc: types.Type, *extra: types.Type) -> Signature:
    if not isinstance(acc, FragmentType) or not isinstance(acc.desc, Gemm):
        refuse("apply", "acc", "a devmath.accumulator", acc)
    if not isinstance(function, types.Dispatcher):
        refuse("apply", "function", "a @cuda.jit(device=True) function", function)
    result = function.get_call_type(context, (acc.element, types.intp, types.intp, *extra), {}).return_type
    if not context.can_convert(result, acc.element):
        refuse("apply", "the result of function", f"a number that converts to {acc.dtype.name}", result)
    return signature(types.none, function, acc, *extra)
