"""Verbs as code: a call of one of our device functions, or a few instructions of LLVM IR."""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.cuda import cgutils, types
from numba.cuda.cudaimpl import registry
from numba.cuda.nvvmutils import call_sreg
from numba.cuda.typing.templates import Signature

from ... import accumulator_device, blas_device, fft_device, verbs
from ...blas_device import Gemm, Operand
from ...dtypes import BY_NAME
from ...fft_device import FFT
from ...layouts import TileLayout
from ...lto import fft_units, gemm_source, tile_source
from ...lto.arch import compute_capability
from ...lto.gemm_plan import GemmPlan
from ...lto.gemm_register_operand import lies_as_operand, register_operand_form
from ...lto.unit import Unit
from ...verbs import Verb
from .. import plain_array_rules
from .attributes import block_rank, emit_digits
from .kernel import annotate, exchange_buffer, shared_memory
from .linking import call_unit, target_arch
from .mainloop import TileIndexType, can_store_boxes, join_lanes, part_of, store_boxes
from .plain_arrays import global_array, inspect, line_distance, require
from .types import ConstantType, FragmentType, StackType, TileType, VectorType, element_name

INT32, INT64 = ir.IntType(32), ir.IntType(64)


def lowered(verb: Verb) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function from (context, builder, signature, values) as the code of `verb`."""
    return registry.lower(verb, types.VarArg(types.Any))


@lowered(verbs.shared)
def lower_shared(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> ir.Value:
    operand = sig.args[0].value
    annotate(context, builder, operand.desc if isinstance(operand, Operand) else operand)
    ty = sig.return_type
    tile = ty.tile if isinstance(ty, StackType) else ty
    memory = shared_memory(context, builder, ty.size_bytes, tile.layout.alignment_bytes)
    if tiles := tile.per_product:
        distance = builder.mul(_product_of_block(builder, tiles.threads), INT32(tiles.stride_bytes))
        memory = builder.gep(memory, [builder.zext(distance, INT64)])
    return builder.bitcast(memory, context.get_value_type(ty))


def _product_of_block(builder: ir.IRBuilder, threads: int) -> ir.Value:
    """Which of the block's products, each of so many threads, the calling thread works on."""
    return builder.udiv(block_rank(builder), INT32(threads))


def registers(context: Any, builder: ir.IRBuilder, ty: FragmentType | VectorType, size: int) -> ir.Value:
    """Address of so many fresh registers, zeroed; a store that nothing reads costs nothing."""
    annotate(context, builder, ty.desc)
    array = ir.ArrayType(context.get_data_type(ty.element), size)
    memory = cgutils.alloca_once(builder, array)
    memory.align = 16
    builder.store(ir.Constant(array, None), memory)
    return builder.bitcast(memory, context.get_value_type(ty))


@lowered(accumulator_device.accumulator)
@lowered(fft_device.registers)
def lower_registers(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> ir.Value:
    return registers(context, builder, sig.return_type, sig.return_type.map.size)


@lowered(fft_device.transform_index)
def lower_transform_index(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> ir.Value:
    desc = sig.args[0].value
    first = builder.mul(builder.zext(call_sreg(builder, "ctaid.x"), INT64), INT64(desc.ffts_per_block))
    in_block = emit_digits(builder, desc.fragment.row_of_thread, block_rank(builder))
    return builder.add(first, builder.zext(in_block, INT64))


@lowered(blas_device.gemm_index)
def lower_gemm_index(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> ir.Value:
    mm = sig.args[0].value
    annotate(context, builder, mm)
    first = builder.mul(builder.zext(call_sreg(builder, "ctaid.x"), INT64), INT64(mm.gemms_per_block))
    return builder.add(first, builder.zext(_product_of_block(builder, mm.threads_per_gemm), INT64))


@lowered(verbs.wait)
def lower_wait(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> ir.Value:
    pending = next((ty.literal_value for ty in sig.args if isinstance(ty, types.IntegerLiteral)), 0)
    mm: Any = next((ty.value for ty in sig.args if isinstance(ty, ConstantType)), None)
    text = f"cp.async.wait_group {pending};"  # each load into a tile commits one group
    if mm is not None and mm.execution != "block":
        # All lanes of a warp share the copies of its products, whichever of them they compute.
        _emit(builder, text)
        function_type = ir.FunctionType(ir.VoidType(), [INT32])
        barrier = cgutils.get_or_insert_function(builder.module, function_type, "llvm.nvvm.bar.warp.sync")
        builder.call(barrier, [INT32(-1)])
    else:
        # The fence orders writes that have been made: it comes after the copies that it is meant for have landed.
        _emit(builder, f"{text} {_proxy_fence()}")
        _barrier(builder)
    return context.get_dummy_value()


def _proxy_fence() -> str:
    """PTX that makes what this thread wrote visible to wgmma, which reads through the asynchronous proxy."""
    return "fence.proxy.async.shared::cta;" if compute_capability(target_arch()) >= (9, 0) else ""


def _emit(builder: ir.IRBuilder, ptx: str) -> None:
    """PTX that no access to memory is moved across."""
    builder.call(ir.InlineAsm(ir.FunctionType(ir.VoidType(), []), ptx, "~{memory}", side_effect=True), [])


def _barrier(builder: ir.IRBuilder) -> None:
    """The barrier of the block."""
    function_type = ir.FunctionType(ir.VoidType(), [])
    builder.call(cgutils.get_or_insert_function(builder.module, function_type, "llvm.nvvm.barrier0"), [])


@lowered(blas_device.gemm)
def lower_gemm(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> ir.Value:
    mm = sig.args[0].value
    plan = mm.plan_on(target_arch())
    annotate(context, builder, mm)
    (_, alpha_type, *_), register_form = sig.args, len(args) == 4
    if isinstance(alpha_type, FragmentType):
        return _lower_gemm_of_registers(context, builder, plan, sig, args)
    if register_form:
        tiles, acc = {"a": 1, "b": 2}, _sums(context, builder, plan, sig.args[3], args[3])
    else:
        tiles = {"a": 2, "b": 3, "c": 5}
    operands = {name: _operand(context, builder, plan, name, sig.args[i], args[i]) for name, i in tiles.items()}
    forms = tuple("tile" if isinstance(sig.args[i], TileType) else "plain" for i in tiles.values())
    stem = _stem(plan)
    if register_form:
        unit = Unit.render(stem, lambda symbol: gemm_source.register_form(plan, forms, symbol))
        call_unit(context, builder, unit, [*operands["a"], *operands["b"], acc])
    else:
        alpha, beta = (_scalar_parts(context, builder, alpha_type, args[i]) for i in (1, 4))
        unit = Unit.render(stem, lambda symbol: gemm_source.tile_form(plan, forms, symbol))
        call_unit(context, builder, unit, [*alpha, *operands["a"], *operands["b"], *beta, *operands["c"]])
    return context.get_dummy_value()


def _lower_gemm_of_registers(
    context: Any, builder: ir.IRBuilder, plan: GemmPlan, sig: Signature, args: Any
) -> ir.Value:
    """``gemm(desc, p, b, acc)`` with A in registers: as they lie, or through shared memory."""
    _, source, b_type, acc_type = sig.args
    _, first, b, acc = args
    acc = _sums(context, builder, plan, acc_type, acc)
    operand_b = _operand(context, builder, plan, "b", b_type, b)
    form = "tile" if isinstance(b_type, TileType) else "plain"
    stem = _stem(plan)
    if lies_as_operand(source.map, plan):
        unit = Unit.render(stem, text_of(register_operand_form, plan, source.map, form))
        call_unit(context, builder, unit, [first, *operand_b, acc])
        return context.get_dummy_value()
    tile, in_use = exchange_buffer(context, builder, "block", plan.a.size_bytes, plan.a.alignment_bytes)
    with builder.if_then(builder.icmp_signed("!=", in_use, INT32(0))):
        _barrier(builder)
    text = text_of(tile_source.store_fragment_to_tile, source.map, source.dtype, plan.a)
    call_unit(context, builder, Unit.render(f"store_fragment_to_tile_{source.dtype.name}", text), [first, tile])
    _emit(builder, _proxy_fence())
    _barrier(builder)
    unit = Unit.render(stem, text_of(gemm_source.register_form, plan, ("tile", form)))
    call_unit(context, builder, unit, [tile, INT32(plan.a.ld), *operand_b, acc])
    return context.get_dummy_value()


def _stem(plan: GemmPlan) -> str:
    """The readable part of the symbols of a product."""
    problem = plan.problem
    return f"gemm_{plan.variant}_{problem.m}x{problem.n}x{problem.k}_{problem.a.name}"


def _sums(context: Any, builder: ir.IRBuilder, plan: GemmPlan, ty: types.Type, value: Any) -> ir.Value:
    """Address of the accumulators that a product adds to."""
    if isinstance(ty, FragmentType):
        return value
    return _plain_registers(context, builder, "devmath.gemm: acc", plan.fragment.size, ty, value)


def _operand(
    context: Any, builder: ir.IRBuilder, plan: GemmPlan, name: str, ty: types.Type, value: Any
) -> list[ir.Value]:
    """Address and leading dimension; a tile has it in its type, the argument goes unread."""
    if isinstance(ty, TileType):
        return [value, INT32(getattr(plan, name).ld)]
    return _plain_tile(context, builder, f"devmath.gemm: {name}", plan.plain(name), ty, value)


def _plain_tile(
    context: Any, builder: ir.IRBuilder, operand: str, layout: TileLayout, ty: types.Array, value: Any
) -> list[ir.Value]:
    """Address and leading dimension of a plain array that holds the lines of a tile; a 1-D one is dense."""
    array = inspect(context, builder, ty, value)
    require(context, builder, operand, array, "shared", plain_array_rules.extents_of(layout, ty.ndim))
    if ty.ndim == 1:
        ld = INT64(layout.line_length)
    else:
        ld = array.shape[1] if ty.layout == "C" else line_distance(builder, operand, array, layout)
    return [array.data, builder.trunc(ld, INT32)]


def _plain_registers(
    context: Any, builder: ir.IRBuilder, operand: str, size: int, ty: types.Array, value: Any
) -> ir.Value:
    array = inspect(context, builder, ty, value)
    require(context, builder, operand, array, "local", (size,))
    return array.data


def _scalar_parts(context: Any, builder: ir.IRBuilder, ty: types.Type, value: ir.Value) -> list[ir.Value]:
    """A real scalar, or real and imaginary part."""
    if isinstance(ty, types.Complex):
        parts = context.make_complex(builder, ty, value)
        return [parts.real, parts.imag]
    return [value]


@lowered(fft_device.fft)
def lower_fft(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> ir.Value:
    desc, data = sig.args[0].value, sig.args[1]
    annotate(context, builder, desc, transforms=1)
    exchange = exchange_buffer(context, builder, "transforms", desc.plan.exchange_bytes)
    inverse = desc.direction == "inverse"
    form, operands = _transform_operands(context, builder, desc, data, args[1])
    stem = f"fft_{desc.n}_{desc.dtype.name}_{desc.direction}"
    unit = Unit.render(stem, lambda symbol: form(desc.plan, inverse, symbol))
    call_unit(context, builder, unit, [*operands, *exchange])
    return context.get_dummy_value()


def _transform_operands(
    context: Any, builder: ir.IRBuilder, desc: FFT, ty: types.Type, value: Any
) -> tuple[Callable[..., str], list[ir.Value]]:
    """Which form of the transform the data asks for, and the arguments that it takes."""
    if isinstance(ty, FragmentType):
        return fft_units.register_form, [value]
    if isinstance(ty, TileType):
        return fft_units.tile_form, [value, INT32(ty.layout.ld)]
    if ty.ndim == 1 and inspect(context, builder, ty, value).space == "local":
        registers = _plain_registers(context, builder, "devmath.fft: data", desc.elements_per_thread, ty, value)
        return fft_units.register_form, [registers]
    return fft_units.tile_form, _plain_tile(context, builder, "devmath.fft: data", desc.layout, ty, value)


@lowered(verbs.load)
def lower_load(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> ir.Value:
    source, target = sig.args[:2]
    if isinstance(source, TileType):
        text = text_of(tile_source.load_fragment_from_tile, target.map, target.dtype, source.layout)
        unit = Unit.render(f"load_fragment_from_tile_{target.dtype.name}", text)
        call_unit(context, builder, unit, [args[1], args[0]])
        return context.get_dummy_value()
    array, dtype = global_array(context, builder, source, *args[::2]), BY_NAME[element_name(source)]
    if isinstance(target, TileType):
        if target.per_product:
            text = text_of(tile_source.load_tile_of_product, target.layout, target.per_product)
        else:
            text = text_of(tile_source.load_tile, target.layout, target.threads)
        call_unit(context, builder, Unit.render(f"load_tile_{target.layout.dtype.name}", text), [args[1], *array])
    elif isinstance(target.desc, Gemm):
        text = text_of(tile_source.load_fragment, target.map, target.dtype, dtype)
        call_unit(context, builder, Unit.render(f"load_fragment_{dtype.name}", text), [args[1], *array])
    else:
        annotate(context, builder, target.desc)
        text = text_of(fft_units.load_registers, target.desc.plan)
        unit = Unit.render(f"load_fft_{target.desc.n}_{target.dtype.name}", text)
        call_unit(context, builder, unit, [args[1], array[0], args[2], *array[1:]])
    return context.get_dummy_value()


@lowered(verbs.store)
def lower_store(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> ir.Value:
    source, target = sig.args[:2]
    if isinstance(target, TileType):
        text = text_of(tile_source.store_fragment_to_tile, source.map, source.dtype, target.layout)
        call_unit(context, builder, Unit.render(f"store_fragment_to_tile_{source.dtype.name}", text), args)
        return context.get_dummy_value()
    at_tile = len(args) == 3 and isinstance(sig.args[2], TileIndexType)
    if at_tile and can_store_boxes(*sig.args):
        store_boxes(context, builder, sig, args)
        return context.get_dummy_value()
    index = () if at_tile else args[2:]
    array, dtype = global_array(context, builder, target, args[1], *index), BY_NAME[element_name(target)]
    if at_tile:
        array = part_of(builder, args[2], array)
    if isinstance(source, TileType):
        if source.per_product:
            text = text_of(tile_source.store_tile_of_product, source.layout, source.per_product, dtype)
        else:
            text = text_of(tile_source.store_tile, source.layout, source.threads, dtype)
        call_unit(context, builder, Unit.render(f"store_tile_{dtype.name}", text), [args[0], *array])
    elif isinstance(source.desc, Gemm):
        text = text_of(tile_source.store_fragment, source.map, source.dtype, dtype)
        call_unit(context, builder, Unit.render(f"store_fragment_{dtype.name}", text), [args[0], *array])
    else:
        text = text_of(fft_units.store_registers, source.desc.plan)
        unit = Unit.render(f"store_fft_{source.desc.n}_{dtype.name}", text)
        call_unit(context, builder, unit, [args[0], array[0], args[2], *array[1:]])
    if at_tile:
        join_lanes(builder)
    return context.get_dummy_value()


def text_of(render: Callable[..., str], *parameters: Any) -> Callable[[str], str]:
    """The text of a unit as a function of its symbol."""
    return lambda symbol: render(*parameters, symbol)
