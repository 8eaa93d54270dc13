"""Numba types of descriptors, operands, tiles and fragments."""

from typing import Any

from llvmlite import ir
from numba.cuda import types
from numba.cuda.cudaimpl import lower_constant
from numba.cuda.datamodel import models
from numba.cuda.extending import register_model

from ...blas_device import Gemm, Operand
from ...dtypes import BY_NAME, DType
from ...fft_device import FFT
from ...fragments import FragmentMap
from ...layouts import TileLayout, TilePerProduct
from .. import float8, operands


class ConstantType(types.Type):
    """A descriptor, or an operand of one: known while compiling, nothing at run time.

    The frozen object itself is the key, so that equal objects, and only they, share a type.
    """

    def __init__(self, value: Gemm | FFT | Operand):
        self.value = value
        super().__init__(name=f"devmath.{value!r}")

    @property
    def key(self) -> Gemm | FFT | Operand:
        return self.value


class TileType(types.Type):
    """A tile in shared memory; at run time the address of its first element.

    `threads` is the block that fills it, unless there is one `per_product`.
    """

    def __init__(self, layout: TileLayout, threads: int, per_product: TilePerProduct | None = None):
        self.layout, self.threads, self.per_product = layout, threads, per_product
        self.argument = operands.TileOperand(layout, per_product)
        place = f"{layout.order} ld={layout.ld} swizzle={layout.swizzle}"
        if per_product:
            place += f" for each {per_product.threads} threads {per_product.stride_bytes} bytes apart"
        super().__init__(name=f"devmath.Tile({layout.rows}x{layout.cols} {layout.dtype.name} {place})")

    @property
    def key(self) -> tuple[TileLayout, int, TilePerProduct | None]:
        return (self.layout, self.threads, self.per_product)

    @property
    def size_bytes(self) -> int:
        """Shared memory that it takes, or those of all products of the block."""
        return self.per_product.size_bytes if self.per_product else self.layout.size_bytes

    @property
    def stage_bytes(self) -> int:
        """Bytes from one stage to the next."""
        return self.per_product.size_bytes if self.per_product else self.layout.stage_bytes

    @property
    def element(self) -> types.Type:
        return numba_type(self.layout.dtype)

    @property
    def value(self) -> types.Type:
        """What ``t[i, j]`` is."""
        return value_type(self.layout.dtype)


class StackType(types.Type):
    """Tiles of one layout in shared memory, one behind another; at run time the address of the first."""

    def __init__(self, tile: TileType, stages: int):
        self.tile, self.stages = tile, stages
        self.argument = operands.StackOperand(tile.layout, stages, tile.per_product)
        super().__init__(name=f"devmath.Stack({stages} x {tile.name})")

    @property
    def key(self) -> tuple[TileType, int]:
        return (self.tile, self.stages)

    @property
    def element(self) -> types.Type:
        return self.tile.element

    @property
    def size_bytes(self) -> int:
        """Shared memory of all stages."""
        return self.stages * self.tile.stage_bytes


class FragmentType(types.Type):
    """A thread's share of a product or of a transform; at run time the address of its first register."""

    def __init__(self, desc: Gemm | FFT, arch: str, converted: DType | None = None):
        self.desc = desc
        self.argument = operands.FragmentOperand(desc, arch, converted)
        self.map, self.dtype = self.argument.map, self.argument.dtype
        super().__init__(name=f"devmath.Fragment({desc!r} of {self.dtype.name} on {arch})")

    @property
    def key(self) -> tuple[Gemm | FFT, FragmentMap, DType]:
        return (self.desc, self.map, self.dtype)

    @property
    def element(self) -> types.Type:
        return numba_type(self.dtype)

    @property
    def value(self) -> types.Type:
        """What ``acc[i]`` is."""
        return value_type(self.dtype)


class VectorType(types.Type):
    """A thread's share of a value a row, or a column; at run time the address of its first slot."""

    def __init__(self, argument: operands.VectorOperand):
        self.argument = argument
        self.desc, self.map, self.dtype = argument.desc, argument.map, argument.dtype
        super().__init__(name=f"devmath.Vector({argument} on {argument.arch})")

    @property
    def key(self) -> tuple[Gemm, str, FragmentMap, DType]:
        return (self.desc, self.argument.axis, self.map, self.dtype)

    @property
    def element(self) -> types.Type:
        return numba_type(self.dtype)

    @property
    def value(self) -> types.Type:
        """What ``r[i]`` is."""
        return value_type(self.dtype)


def numba_type(dtype: DType) -> types.Type:
    """Numba's type of a row of our table."""
    return float8.numba_types()[dtype.name] if dtype.name in float8.NAMES else getattr(types, dtype.name)


def value_type(dtype: DType) -> types.Type:
    """What an element is in kernel code: itself, or float32 for float8, with which Numba does not compute."""
    return types.float32 if dtype.name in float8.NAMES else numba_type(dtype)


def converts_to(context: Any, value: types.Type, holder: TileType | FragmentType | VectorType) -> bool:
    """Whether a value can become an element: Numba would also make an integer of a fraction."""
    if holder.argument.dtype.is_integer and not isinstance(value, types.Integer | types.Boolean):
        return False
    return bool(context.can_convert(value, holder.value))


def dtype_of(ty: types.Type) -> DType | None:
    """The row of our table that a NumPy scalar type or a dtype in kernel code names; None for anything else."""
    named = ty.dtype if isinstance(ty, types.NumberClass | types.DType) else None
    return next((row for row in BY_NAME.values() if numba_type(row) == named), None)


_KINDS = {
    types.Integer: "integer",
    types.Complex: "complex",
    types.Number: "real",
    types.Dispatcher: "device function",
}


def argument(ty: types.Type) -> operands.Argument:
    """What an argument of type `ty` is, to the rules."""
    if isinstance(ty, ConstantType):
        return ty.value
    if hasattr(ty, "argument"):  # one of ours
        return ty.argument
    if isinstance(ty, types.Array):
        return operands.ArrayOperand(ty.ndim, element_name(ty), ty.layout, ty.mutable)
    items = tuple(map(argument, ty)) if isinstance(ty, types.BaseTuple) else ()
    kind = next((kind for cls, kind in _KINDS.items() if isinstance(ty, cls)), "other")
    return operands.OtherOperand(ty, kind, items, ty.literal_value if isinstance(ty, types.IntegerLiteral) else None)


def element_name(array: types.Array) -> str:
    """Our name of an array's element type; Numba's where it is none of ours."""
    rows = (row for row in BY_NAME.values() if row.name not in float8.NAMES)
    found = next((row.name for row in rows if numba_type(row) == array.dtype), None)
    return found or float8.name_of(array.dtype) or str(array.dtype)


@register_model(ConstantType)
class _ConstantModel(models.OpaqueModel):
    pass


class _PointerModel(models.PrimitiveModel):
    """A generic pointer to elements; LLVM recovers the address space once all is inlined."""

    def __init__(self, manager: Any, fe_type: TileType | StackType | FragmentType | VectorType):
        element = manager.lookup(fe_type.element).get_data_type()
        super().__init__(manager, fe_type, ir.PointerType(element))


register_model(TileType)(_PointerModel)
register_model(StackType)(_PointerModel)
register_model(FragmentType)(_PointerModel)
register_model(VectorType)(_PointerModel)


@lower_constant(ConstantType)
def _lower_descriptor(context: Any, builder: Any, ty: ConstantType, value: Any) -> Any:
    return context.get_dummy_value()
