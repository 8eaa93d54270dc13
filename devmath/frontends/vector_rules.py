"""Which calls on accumulators and their vectors are right, beside those of `rules`: the same for every front end."""

from ..blas_device import Gemm
from ..dtypes import BY_NAME, DType
from . import rules
from .operands import Argument, FragmentOperand, VectorOperand, seen_along
from .rules import TypingError


def reduction(verb: str, acc: Argument) -> VectorOperand:
    """Accept an accumulator, of a real type but for a sum; return the vector that ``row_max`` and its like make."""
    if not isinstance(acc, FragmentOperand) or acc.is_transform:
        raise TypingError(f"devmath.{verb}: acc must be a devmath.accumulator, got {acc}")
    axis, operation = verb.split("_")
    if acc.dtype.is_complex and operation != "sum":
        raise TypingError(f"devmath.{verb}: acc must be of a real dtype, complex numbers have no order, got {acc}")
    assert isinstance(acc.desc, Gemm)
    return VectorOperand(acc.desc, axis, BY_NAME[acc.dtype.accumulator], acc.arch)


def vector(verb: str, desc: Argument, values: Argument, arch: str | None = None) -> VectorOperand:
    """Accept a product, and a number or a vector of as many values; return the vector that is made."""
    mm = rules.accumulator(desc, arch, verb)
    made = VectorOperand(mm, verb.partition("_")[0], BY_NAME[mm.plan_on(arch).accumulator.accumulator], arch)
    if isinstance(values, VectorOperand):
        if mm.execution != "block" and not values.deals_out_like(mm.plan_on(arch).fragment):
            raise TypingError(
                f"devmath.{verb}: values must be dealt out as {mm!r} deals out its own where execution is"
                f" {mm.execution!r}, got {values}"
            )
        if (values.axis, values.dtype, values.map.rows) == (made.axis, made.dtype, made.map.rows):
            return made
    elif rules.converts_to(values, made.dtype):
        return made
    lines = f"{made.map.rows} {'rows' if made.axis == 'row' else 'columns'}"
    raise TypingError(
        f"devmath.{verb}: values must be a number that converts to {made.dtype.name}, or a {made.axis} vector of that"
        f" dtype with {lines}, got {values}"
    )


def convert(acc: Argument, dtype: DType | None, got: object) -> FragmentOperand:
    """Accept an accumulator and a dtype that it converts to; return the accumulator that is made.

    `dtype` is None where the argument `got` is no dtype of ours.
    """
    if not isinstance(acc, FragmentOperand) or acc.is_transform:
        raise TypingError(f"devmath.convert: acc must be a devmath.accumulator, got {acc}")
    allowed = rules.convertible(acc.dtype)
    if dtype is None or dtype.name not in allowed:
        raise TypingError(f"devmath.convert: dtype must be {' or '.join(allowed)}, got {got}")
    return FragmentOperand(acc.desc, acc.arch, dtype)


def apply(function: Argument, acc: Argument, *extra: Argument) -> None:
    """Accept a device function, an accumulator or a vector, and of vectors beside it those that go with it."""
    if not isinstance(acc, VectorOperand):
        rules.apply(function, acc)
        assert isinstance(acc, FragmentOperand)
        fragment = acc.map
    else:
        rules.device_function(function)
        fragment = seen_along(acc.axis, acc.map)
    for vector in extra:
        if not isinstance(vector, VectorOperand):
            continue
        if isinstance(acc, VectorOperand) and acc.axis != vector.axis:
            raise TypingError(f"devmath.apply: vectors must be of one axis, got {acc} and {vector}")
        if not vector.deals_out_like(fragment):
            raise TypingError(
                f"devmath.apply: a vector must be of a product that deals out its {vector.axis}s as {acc.desc!r} does,"
                f" got {vector}: devmath.{vector.axis}_vector deals its values out anew"
            )
