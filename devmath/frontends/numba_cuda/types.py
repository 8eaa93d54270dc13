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
from ...layouts import TileLayout
from .. import mainloop_rules, rules
from .matrices import MappedType


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

    `threads` is the block that fills it.
    """

    def __init__(self, layout: TileLayout, threads: int):
        self.layout, self.threads = layout, threads
        self.argument = rules.TileOperand(layout)
        place = f"{layout.order} ld={layout.ld} swizzle={layout.swizzle}"
        super().__init__(name=f"devmath.Tile({layout.rows}x{layout.cols} {layout.dtype.name} {place})")

    @property
    def key(self) -> tuple[TileLayout, int]:
        return (self.layout, self.threads)

    @property
    def element(self) -> types.Type:
        return numba_type(self.layout.dtype)


class FragmentType(types.Type):
    """A thread's share of a product or of a transform; at run time the address of its first register."""

    def __init__(self, desc: Gemm | FFT, arch: str):
        self.desc = desc
        self.argument = rules.FragmentOperand(desc, arch)
        self.map, self.dtype = self.argument.map, self.argument.dtype
        super().__init__(name=f"devmath.Fragment({desc!r} on {arch})")

    @property
    def key(self) -> tuple[Gemm | FFT, FragmentMap]:
        return (self.desc, self.map)

    @property
    def element(self) -> types.Type:
        return numba_type(self.dtype)


def numba_type(dtype: DType) -> types.Type:
    """Numba's type of a row of our table."""
    return getattr(types, dtype.name)


_KINDS = {
    types.Integer: "integer",
    types.Complex: "complex",
    types.Number: "real",
    types.Dispatcher: "device function",
}


def argument(ty: types.Type) -> rules.Argument:
    """What an argument of type `ty` is, to the rules."""
    if isinstance(ty, ConstantType):
        return ty.value
    if isinstance(ty, TileType | FragmentType):
        return ty.argument
    if isinstance(ty, MappedType):
        return mainloop_rules.MappedOperand(2, element_name(ty), ty.layout, ty.mutable, ty.desc, ty.matrix)
    if hasattr(ty, "argument"):
        return ty.argument
    if isinstance(ty, types.Array):
        return rules.ArrayOperand(ty.ndim, element_name(ty), ty.layout, ty.mutable)
    items = tuple(map(argument, ty)) if isinstance(ty, types.BaseTuple) else ()
    return rules.OtherOperand(ty, next((kind for cls, kind in _KINDS.items() if isinstance(ty, cls)), "other"), items)


def element_name(array: types.Array) -> str:
    """Our name of an array's element type; Numba's where it is none of ours."""
    return next((name for name, row in BY_NAME.items() if numba_type(row) == array.dtype), str(array.dtype))


@register_model(ConstantType)
class _ConstantModel(models.OpaqueModel):
    pass


class _PointerModel(models.PrimitiveModel):
    """A generic pointer to elements; LLVM recovers the address space once all is inlined."""

    def __init__(self, manager: Any, fe_type: TileType | FragmentType):
        element = manager.lookup(fe_type.element).get_data_type()
        super().__init__(manager, fe_type, ir.PointerType(element))


register_model(TileType)(_PointerModel)
register_model(FragmentType)(_PointerModel)


@lower_constant(ConstantType)
def _lower_descriptor(context: Any, builder: Any, ty: ConstantType, value: Any) -> Any:
    return context.get_dummy_value()
