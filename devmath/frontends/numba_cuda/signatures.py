"""Which types a verb takes, and which it returns."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from numba.cuda import types
from numba.cuda.typing.templates import AbstractTemplate, Signature, signature

from ... import accumulator_device, blas_device, fft_device, mainloop_device, verbs
from ...accumulator_device import REDUCTIONS, VECTORS
from ...blas_device import Operand
from ...verbs import Verb
from .. import call_rules, mainloop_rules, rules, vector_rules
from .linking import target_arch
from .mainloop import TileIndexType, TilesType, is_mapped
from .types import FragmentType, StackType, TileType, VectorType, argument, converts_to, dtype_of, numba_type

#: Numba's type of each verb.
VERB_TYPES: dict[Any, types.Function] = {}


def typed(verb: Verb) -> Callable[[Callable[..., Signature]], Callable[..., Signature]]:
    """Register a function from argument types to a signature as the typing of `verb`."""

    def register(resolve: Callable[..., Signature]) -> Callable[..., Signature]:
        class Template(AbstractTemplate):
            key = verb
            prefer_literal = call_rules.takes_keywords(verb.__name__)  # each of them must be known while compiling

            def generic(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Signature:
                call_rules.arguments(verb.__name__, resolve, self.context, *args, **kws)
                sig = resolve(self.context, *args, **kws)
                return sig.replace(pysig=_call(len(args), kws)) if kws else sig

        VERB_TYPES[verb] = types.Function(Template)
        return resolve

    return register


def _call(positional: int, keywords: Iterable[str]) -> inspect.Signature:
    """How a call names its arguments: some without a name, then `keywords`."""
    names = [*(f"argument{i}" for i in range(positional)), *keywords]
    return inspect.Signature([inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names])


@typed(verbs.shared)
def type_shared(context: Any, operand: types.Type, stages: types.Type | None = None) -> Signature:
    value: Any = argument(operand)
    layout = rules.shared(value, target_arch())
    if isinstance(value, Operand):
        tile = TileType(layout, value.desc.threads, value.per_product_on(target_arch()))
    else:
        tile = TileType(layout, value.threads)
    if stages is None:
        return signature(tile, operand)
    if stages == types.none:
        return signature(tile, operand, stages)
    return signature(StackType(tile, call_rules.constant("shared", "stages", argument(stages), 1)), operand, stages)


@typed(accumulator_device.accumulator)
def type_accumulator(context: Any, desc: types.Type) -> Signature:
    arch = target_arch()
    return signature(FragmentType(rules.accumulator(argument(desc), arch), arch), desc)


@typed(fft_device.registers)
def type_registers(context: Any, desc: types.Type) -> Signature:
    return signature(FragmentType(rules.descriptor("registers", argument(desc)).forward, target_arch()), desc)


@typed(fft_device.transform_index)
def type_transform_index(context: Any, desc: types.Type) -> Signature:
    rules.descriptor("transform_index", argument(desc))
    return signature(types.intp, desc)


@typed(blas_device.gemm_index)
def type_gemm_index(context: Any, desc: types.Type) -> Signature:
    rules.descriptor("gemm_index", argument(desc))
    return signature(types.intp, desc)


@typed(verbs.wait)
def type_wait(context: Any, *args: types.Type, pending: types.Type | None = None) -> Signature:
    call_rules.wait(*map(argument, args), pending=None if pending is None else argument(pending))
    return signature(types.none, *args, *([] if pending is None else [pending]))


@typed(blas_device.gemm)
def type_gemm(context: Any, desc: types.Type, *operands: types.Type) -> Signature:
    mm = rules.gemm(argument(desc), *map(argument, operands), arch=target_arch())
    if len(operands) == 5:
        _, a, b, _, c = operands
        scalar = numba_type(mm.plan.accumulator)
        operands = (scalar, a, b, scalar, c)
    return signature(types.none, desc, *operands)


@typed(fft_device.fft)
def type_fft(context: Any, desc: types.Type, data: types.Type) -> Signature:
    rules.fft(argument(desc), argument(data))
    return signature(types.none, desc, data)


@typed(verbs.load)
def type_load(context: Any, source: types.Type, target: types.Type, *row: types.Type) -> Signature:
    rules.load(argument(source), argument(target), *map(argument, row))
    return signature(types.none, source, target, *(types.intp for _ in row))


@typed(verbs.store)
def type_store(context: Any, source: types.Type, target: types.Type, *row: types.Type) -> Signature:
    if len(row) == 1 and isinstance(row[0], TileIndexType):
        mainloop_rules.store_at(argument(source), argument(target), row[0].argument, target_arch())
        return signature(types.none, source, target, *row)
    rules.store(argument(source), argument(target), *map(argument, row))
    return signature(types.none, source, target, *(types.intp for _ in row))


@typed(verbs.apply)
def type_apply(context: Any, function: types.Type, acc: types.Type, *extra: types.Type) -> Signature:
    passed = extra
    if extra and isinstance(extra[0], TileIndexType):
        mainloop_rules.accumulator_of("apply", argument(acc), extra[0].argument, target_arch())
        passed = extra[1:]
    vector_rules.apply(argument(function), argument(acc), *map(argument, passed))
    result = function.get_call_type(context, applied_types(acc, passed), {}).return_type
    if not converts_to(context, result, acc):
        rules.refuse_result(acc.argument, argument(result))
    return signature(types.none, function, acc, *extra)


def applied_types(acc: types.Type, extra: tuple[types.Type, ...]) -> tuple[types.Type, ...]:
    """Types of what the function of `apply` gets: the element, its place, and an element of each vector."""
    place = (types.intp,) if isinstance(acc, VectorType) else (types.intp, types.intp)
    return (acc.value, *place, *(ty.value if isinstance(ty, VectorType) else ty for ty in extra))


@typed(accumulator_device.convert)
def type_convert(context: Any, acc: types.Type, dtype: types.Type) -> Signature:
    made = vector_rules.convert(argument(acc), dtype_of(dtype), dtype)
    return signature(FragmentType(made.desc, target_arch(), made.converted), acc, dtype)


def _type_reduction(verb: Verb) -> None:
    @typed(verb)
    def type_reduction(context: Any, acc: types.Type) -> Signature:
        return signature(VectorType(vector_rules.reduction(verb.__name__, argument(acc))), acc)


def _type_vector(verb: Verb) -> None:
    @typed(verb)
    def type_vector(context: Any, desc: types.Type, values: types.Type) -> Signature:
        made = VectorType(vector_rules.vector(verb.__name__, argument(desc), argument(values), target_arch()))
        return signature(made, desc, values if isinstance(values, VectorType) else made.element)


for _reduction in REDUCTIONS:
    _type_reduction(_reduction)
for _vector in VECTORS:
    _type_vector(_vector)


@typed(mainloop_device.tiles)
def type_tiles(context: Any, desc: types.Type, a: types.Type, b: types.Type, c: types.Type) -> Signature:
    mm = mainloop_rules.tiles(argument(desc), *map(argument, (a, b, c)), arch=target_arch())
    return signature(TilesType(TileIndexType(mm, is_mapped(a, b))), desc, a, b, c)


@typed(mainloop_device.mainloop)
def type_mainloop(context: Any, desc: types.Type, tile: types.Type, acc: types.Type) -> Signature:
    mainloop_rules.mainloop(argument(desc), argument(tile), argument(acc), target_arch())
    return signature(types.none, desc, tile, acc)
