"""Whole matrix products: `tiles` as an iterator, `mainloop`, and the epilog verbs where they are given a tile.

What a thread keeps from tile to tile is a structure of our C++ (`State` of a mainloop), which becomes registers once
all is inlined. Code here reads its first members, `TileCursor` of scheduler.cuh.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.cuda import cgutils, types
from numba.cuda.core.imputils import RefType, iternext_impl
from numba.cuda.cudadecl import registry as typing_registry
from numba.cuda.cudaimpl import registry
from numba.cuda.datamodel import models
from numba.cuda.extending import register_model
from numba.cuda.np.arrayobj import make_array
from numba.cuda.typing.templates import AttributeTemplate, Signature

from ... import mainloop_device
from ...blas_device import Gemm
from ...dtypes import BY_NAME
from ...lto import mainloop_source
from ...lto.arch import compute_capability
from ...lto.mainloop_plan import STATE_BYTES
from ...lto.unit import Unit
from .. import mainloop_rules
from ..operands import TileIndexOperand
from .kernel import annotate, shared_memory
from .launch import requirements_of
from .linking import BYTE_POINTER, call_unit, in_kernel, target_arch
from .matrices import TENSOR_MAP, MappedType
from .plain_arrays import global_array
from .types import FragmentType, element_name

INT32, INT64 = ir.IntType(32), ir.IntType(64)
ROW, COL, ROWS, COLS, HAS_TILE = range(5)  # members of TileCursor, 32 bits each


class TileIndexType(types.Type):
    """A tile of a loop over tiles; at run time the address of the thread's state. `is_mapped`: A and B have maps."""

    def __init__(self, desc: Gemm, is_mapped: bool):
        self.desc, self.is_mapped = desc, is_mapped
        self.argument = TileIndexOperand(desc)
        super().__init__(name=f"devmath.TileIndex({desc!r}, {is_mapped})")

    @property
    def key(self) -> tuple[Gemm, bool]:
        return (self.desc, self.is_mapped)


class TilesType(types.SimpleIteratorType):
    """The loop itself; at run time the same address."""

    def __init__(self, tile: TileIndexType):
        super().__init__(f"devmath.Tiles({tile.name})", tile)

    @property
    def key(self) -> tuple[Gemm, bool]:
        return self.yield_type.key


class _StateModel(models.PrimitiveModel):
    def __init__(self, manager: Any, fe_type: types.Type):
        super().__init__(manager, fe_type, BYTE_POINTER)


register_model(TileIndexType)(_StateModel)
register_model(TilesType)(_StateModel)


def _member(builder: ir.IRBuilder, state: ir.Value, member: int) -> ir.Value:
    """A member of the cursor, as 64 bits that are not negative."""
    address = builder.gep(builder.bitcast(state, INT32.as_pointer()), [INT32(member)])
    return builder.zext(builder.load(address), INT64)


@typing_registry.register_attr
class TileIndexAttributes(AttributeTemplate):
    key = TileIndexType

    def generic_resolve(self, ty: TileIndexType, attribute: str) -> types.Type | None:
        return types.intp if attribute in ("row", "col") else None


@registry.lower_getattr_generic(TileIndexType)
def lower_place(context: Any, builder: ir.IRBuilder, ty: TileIndexType, value: ir.Value, attribute: str) -> ir.Value:
    return _member(builder, value, {"row": ROW, "col": COL}[attribute])


def _call(
    context: Any, builder: ir.IRBuilder, desc: Gemm, text: Callable[..., str], parameter: Any, args: list[ir.Value]
) -> None:
    """Call a function of a mainloop; `text` and `parameter` make its source."""
    plan = desc.mainloop_on(target_arch())
    stem = f"mainloop_{text.__name__}_{desc.m}x{desc.n}x{desc.k}_{desc.dtype.name}"
    call_unit(context, builder, Unit.render(stem, lambda symbol: text(plan, parameter, symbol)), args)


@registry.lower(mainloop_device.tiles, types.VarArg(types.Any))
def lower_tiles(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> ir.Value:
    tile, requirements = sig.return_type.yield_type, requirements_of(context.active_code_library)
    mainloop_rules.one_loop_a_kernel(in_kernel(), requirements.has_mainloop)
    requirements.has_mainloop = True
    annotate(context, builder, tile.desc)
    plan = tile.desc.mainloop_on(target_arch())
    state = cgutils.alloca_once(builder, ir.ArrayType(INT64, STATE_BYTES // 8))
    state.align = 16
    memory = shared_memory(context, builder, plan.shared_bytes, 1024)
    a, b, c = (global_array(context, builder, ty, value) for ty, value in zip(sig.args[1:], args[1:], strict=True))
    if tile.is_mapped:
        mark_tensor_maps(builder)
        maps = [make_array(sig.args[i])(context, builder, args[i]).tensor_map for i in (1, 2)]
        operands = [*maps, *c[1:3], a[2]]
    else:
        operands = [*a, *b, *c[1:3]]
    _call(context, builder, tile.desc, mainloop_source.begin, tile.is_mapped, [state, memory, *operands])
    return builder.bitcast(state, BYTE_POINTER)


class _ByValue(ir.values.ArgumentAttributes):
    """Attributes of a parameter whose pointee the launch passes. Below 10.0 NVVM reads the text of LLVM 7."""

    modern = False

    def _to_list(self, ty: Any) -> list[str]:
        return [f"byval({ty.pointee})" if self.modern else "byval", "align 64"]


def mark_tensor_maps(builder: ir.IRBuilder) -> None:
    """Have a kernel take its tensor maps by value, as constants that TMA may read where the launch put them."""
    function, module = builder.function, builder.module
    # Argument 0 is dropped when the kernel is finished, so this index is the one that NVVM wants, which counts from 1.
    indices = [i for i, argument in enumerate(function.args) if argument.type == TENSOR_MAP.as_pointer()]
    for i in indices:
        attributes = function.args[i].attributes = _ByValue()
        attributes.modern = compute_capability(target_arch()) >= (10, 0)
    node = module.add_metadata([INT32(i) for i in indices])
    constants = module.add_metadata((function, ir.MetaDataString(module, "grid_constant"), node))
    cgutils.get_or_insert_named_metadata(module, "nvvm.annotations").add(constants)


@registry.lower("iternext", TilesType)
@iternext_impl(RefType.BORROWED)
def lower_next(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any, result: Any) -> None:
    (state,), tile = args, sig.args[0].yield_type
    _call(context, builder, tile.desc, mainloop_source.advance, tile.is_mapped, [state])
    result.set_valid(builder.icmp_unsigned("!=", _member(builder, state, HAS_TILE), INT64(0)))
    result.yield_(state)


@registry.lower(mainloop_device.mainloop, types.VarArg(types.Any))
def lower_mainloop(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> ir.Value:
    tile = sig.args[1]
    _call(context, builder, tile.desc, mainloop_source.multiply, tile.is_mapped, [args[1], args[2]])
    return context.get_dummy_value()


# The epilog.


class TileBounds:
    """Where a tile lies in the matrices, for the code of an epilog; `state` is the thread's."""

    def __init__(self, builder: ir.IRBuilder, ty: TileIndexType, state: ir.Value):
        self.row, self.col, self.rows, self.cols = (_member(builder, state, i) for i in (ROW, COL, ROWS, COLS))
        is_whole = [
            builder.icmp_unsigned("==", self.rows, INT64(ty.desc.m)),
            builder.icmp_unsigned("==", self.cols, INT64(ty.desc.n)),
        ]
        self.is_whole = builder.and_(*is_whole)


def part_of(builder: ir.IRBuilder, state: ir.Value, array: list[ir.Value]) -> list[ir.Value]:
    """The part of an array, as `global_array` describes one, from the tile on."""
    data, rows, cols, row_stride, col_stride = array
    row, col = _member(builder, state, ROW), _member(builder, state, COL)
    offset = builder.add(builder.mul(row, row_stride), builder.mul(col, col_stride))
    start = builder.gep(builder.bitcast(data, BYTE_POINTER), [offset])
    return [start, builder.sub(rows, row), builder.sub(cols, col), row_stride, col_stride]


def join_lanes(builder: ir.IRBuilder) -> None:
    """Bring the lanes of a warp together.

    Where the last thing in a loop is a store under a condition, both ways out of it lead back to the loop's start.
    Below 9.0 ptxas then takes the lanes for apart in all of the loop, and keeps a second copy of all their exchanges.
    """
    function_type = ir.FunctionType(ir.VoidType(), [])
    builder.call(ir.InlineAsm(function_type, "bar.warp.sync 0xffffffff;", "~{memory}", side_effect=True), [])


def can_store_boxes(acc: FragmentType, array: types.Array, tile: TileIndexType) -> bool:
    """Whether an accumulator goes to an array by TMA: sums as they are, and an array that has a map for the purpose."""
    if acc.dtype != tile.desc.plan.accumulator:
        return False
    is_c = isinstance(array, MappedType) and array.matrix == "c" and array.desc == tile.desc
    return is_c and tile.is_mapped


def store_boxes(context: Any, builder: ir.IRBuilder, sig: Signature, args: Any) -> None:
    """Store (accumulator, array, tile) by TMA."""
    _, array, tile = sig.args
    tensor_map = make_array(array)(context, builder, args[1]).tensor_map
    dtype = BY_NAME[element_name(array)]
    _call(context, builder, tile.desc, mainloop_source.store, dtype, [args[2], args[0], tensor_map])


def is_mapped(*matrices: types.Type) -> bool:
    """Whether all of some operands have tensor maps."""
    return all(isinstance(ty, MappedType) for ty in matrices)
