"""Operands of a mainloop on the host: arrays of any library as kernel arguments, with tensor maps where they help.

A matrix with a map is to Numba an array with one member more. What a launch passes is put together once for each place
in memory, so that neither `operands` nor a launch converts an array that it has seen.
"""

from collections import OrderedDict
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from llvmlite import ir
from numba import cuda
from numba.cuda import types
from numba.cuda.datamodel import models
from numba.cuda.extending import register_model

from ...blas_device import Gemm
from ...dtypes import BY_NAME, lookup
from ...layouts import round_up
from ...lto.arch import arch_name
from ...lto.mainloop_plan import Box
from .. import mainloop_rules
from ..operands import MappedOperand
from .types import element_name, numba_type

TENSOR_MAP = ir.global_context.get_identified_type("struct.devmath_tensor_map")
if TENSOR_MAP.is_opaque:
    TENSOR_MAP.set_body(ir.ArrayType(ir.IntType(64), 16))

_SWIZZLES = {8: "SWIZZLE_128B", 4: "SWIZZLE_64B", 2: "SWIZZLE_32B"}
TMA_ALIGNMENT = 16  # bytes that a matrix and each of its lines must start at a multiple of
_KEPT = 64  # operands of one descriptor that are remembered


class TensorMapType(types.CPointer):
    """A tensor map: a kernel gets it by value, and its address is what code sees."""

    def __init__(self) -> None:
        super().__init__(types.uint8)
        self.name = "devmath.TensorMap"


@register_model(TensorMapType)
class _TensorMapModel(models.PrimitiveModel):
    def __init__(self, manager: Any, fe_type: TensorMapType):
        super().__init__(manager, fe_type, TENSOR_MAP.as_pointer())


class MappedType(types.Array):
    """An array with the tensor map that `operands` made for matrix `matrix` of a descriptor."""

    def __init__(self, dtype: types.Type, layout: str, mutable: bool, desc: Gemm, matrix: str):
        self.desc, self.matrix = desc, matrix
        name = f"devmath.Mapped({dtype}, {layout}, {mutable}, {matrix} of {desc!r})"
        super().__init__(dtype, 2, layout, readonly=not mutable, name=name)

    @property
    def key(self) -> tuple[Any, ...]:
        return (*super().key, self.desc, self.matrix)

    @property
    def argument(self) -> MappedOperand:
        """What it is to the rules."""
        return MappedOperand(2, element_name(self), self.layout, self.mutable, self.desc, self.matrix)


@register_model(MappedType)
class _MappedModel(models.StructModel):
    def __init__(self, manager: Any, fe_type: MappedType):
        members = [
            ("meminfo", types.MemInfoPointer(fe_type.dtype)),
            ("parent", types.pyobject),
            ("nitems", types.intp),
            ("itemsize", types.intp),
            ("data", types.CPointer(fe_type.dtype)),
            ("shape", types.UniTuple(types.intp, 2)),
            ("strides", types.UniTuple(types.intp, 2)),
            ("tensor_map", TensorMapType()),
        ]
        super().__init__(manager, fe_type, members)


@dataclass(frozen=True)
class Placement:
    """Where a matrix lies, and its tensor map.

    Parameters
    ----------
    pointer : int
        Address of the first element.
    shape, strides : tuple of int
        Extents, and bytes from one row, or column, to the next.
    dtype : numpy.dtype
    is_writable : bool
    numba_type : types.Array
    tensor_map : TensorMapDescriptor or None
    """

    pointer: int
    shape: tuple[int, int]
    strides: tuple[int, int]
    dtype: np.dtype
    is_writable: bool
    numba_type: types.Array = None
    tensor_map: Any = None

    def plain_type(self, name: str) -> types.Array:
        """Numba's type of the array alone; that of A and of B says nothing of strides, so that one kernel takes all."""
        (rows, cols), size = self.shape, self.dtype.itemsize
        orders = {(cols * size, size): "C", (size, rows * size): "F"}
        layout = orders.get(self.strides, "A") if name == "c" else "A"
        return types.Array(numba_type(lookup(self.dtype)), 2, layout, readonly=not self.is_writable)

    @cached_property
    def arguments(self) -> tuple[Any, ...]:
        """What a launch passes: the members of Numba's array, and the map."""
        size = self.shape[0] * self.shape[1]
        array = (0, 0, size, self.dtype.itemsize, self.pointer, *self.shape, *self.strides)
        return array if self.tensor_map is None else (*array, self.tensor_map)


class Matrix:
    """A matrix in device memory, as `Gemm.operands` returns it; keeps the array that owns the memory alive."""

    __slots__ = ("_numba_type_", "owner", "placement")

    def __init__(self, owner: Any, placement: Placement):
        self.owner, self.placement = owner, placement
        self._numba_type_ = placement.numba_type


def take_matrices(kernel: Any) -> None:
    """Have the launches of a kernel pass matrices as the arguments that those have ready."""
    prepare = kernel._prepare_args

    def prepare_any(ty: Any, value: Any, stream: Any, retr: Any, arguments: list[Any]) -> None:
        if isinstance(value, Matrix):
            arguments.extend(value.placement.arguments)
        else:
            prepare(ty, value, stream, retr, arguments)

    kernel._prepare_args = prepare_any


# Host calls.


def current_arch() -> str:
    """Target of the current device."""
    return arch_name(cuda.get_current_device().compute_capability)


def multiprocessors() -> int:
    """Multiprocessors of the current device."""
    return int(cuda.get_current_device().MULTIPROCESSOR_COUNT)


#: Placements by the fingerprints of three arrays, of each descriptor by its identity.
_made: dict[int, tuple[Gemm, OrderedDict[Any, tuple[Placement, ...]]]] = {}


def operands(desc: Gemm, a: Any, b: Any, c: Any) -> tuple[Matrix, Matrix, Matrix]:
    """`Gemm.operands`: matrices of three arrays, from memory where such were seen before."""
    _, known = _made.setdefault(id(desc), (desc, OrderedDict()))
    try:
        key = (_fingerprint(a), _fingerprint(b), _fingerprint(c))
        placed = known.get(key)
    except AttributeError:  # none of the libraries that have a short way
        key, placed = None, None
    if placed is None:
        placed = _place(desc, (a, b, c))
        if key is not None:
            known[key] = placed
        while len(known) > _KEPT:
            known.popitem(last=False)
    return Matrix(a, placed[0]), Matrix(b, placed[1]), Matrix(c, placed[2])


def _fingerprint(array: Any) -> tuple[Any, ...]:
    """All that a placement depends on, by the shortest way that the array's library has."""
    if hasattr(array, "data_ptr"):  # PyTorch
        return array.data_ptr(), array.shape, array.stride(), array.dtype, array.device
    pointer = getattr(array, "device_ctypes_pointer", None)  # Numba
    address = array.data.ptr if pointer is None else pointer.value  # else CuPy
    return address, array.shape, array.strides, array.dtype


def _place(desc: Gemm, arrays: tuple[Any, ...]) -> tuple[Placement, ...]:
    """Placements of three arrays that fit the descriptor: with maps where the target and the arrays allow."""
    found = {name: _placement(name, array) for name, array in zip("abc", arrays, strict=True)}
    mainloop_rules.operands(desc, [x.dtype for x in found.values()], [x.shape for x in found.values()])
    if not found["c"].is_writable:
        raise ValueError("c must be an array that may be written, got a read-only one")
    for name, order in (("a", desc.a_order), ("b", desc.b_order)):
        mainloop_rules.order_of(name, order, found[name].shape, found[name].strides, found[name].dtype.itemsize)
    boxes = desc.mainloop_on(current_arch()).boxes(BY_NAME[found["c"].dtype.name])
    mapped = {
        name: box
        for name, box in boxes.items()
        if _can_be_mapped(found[name], box) and (name != "c" or _ends_with_a_granule(found[name], box))
    }
    # No box of an empty matrix is ever read, but its map must name memory that exists.
    somewhere = next((x.pointer for x in found.values() if x.pointer and x.pointer % TMA_ALIGNMENT == 0), None)
    if {"a", "b"} <= set(mapped) and somewhere:
        found |= {name: _with_map(desc, name, found[name], box, somewhere) for name, box in mapped.items()}
    return tuple(replace(x, numba_type=x.numba_type or x.plain_type(name)) for name, x in found.items())


def _placement(name: str, array: Any) -> Placement:
    """Where an array of any library lies."""
    interface = getattr(array, "__cuda_array_interface__", None)
    if hasattr(array, "data_ptr") and getattr(array, "is_cuda", False):  # PyTorch, whose interface lacks some types
        strides: Any = tuple(stride * array.element_size() for stride in array.stride())
        pointer, shape, is_writable = array.data_ptr(), tuple(array.shape), True
    elif interface is not None:
        (pointer, readonly), shape, strides = interface["data"], interface["shape"], interface.get("strides")
        is_writable = not readonly
    elif hasattr(array, "__dlpack_device__"):
        return _placement(name, _DLPackArray(name, array))
    else:
        raise TypeError(f"{name} must be an array in device memory, got {type(array).__name__}")
    dtype = lookup(str(array.dtype).rpartition(".")[2], f"the dtype of {name}").numpy
    if len(shape) == 2 and strides is None:
        strides = (shape[1] * dtype.itemsize, dtype.itemsize)
    return Placement(pointer or 0, tuple(shape), strides, dtype, is_writable)


class _DLPackArray:
    """An array that offers DLPack alone, in the terms of the others."""

    def __init__(self, name: str, array: Any):
        from cuda.core.utils import StridedMemoryView

        self._view = view = StridedMemoryView.from_any_interface(array, stream_ptr=-1)
        if not view.is_device_accessible:
            raise TypeError(f"{name} must be an array in device memory, got {type(array).__name__} on the host")
        self.dtype = view.dtype
        strides = view.strides and tuple(stride * view.dtype.itemsize for stride in view.strides)
        self.__cuda_array_interface__ = {"data": (view.ptr, view.readonly), "shape": view.shape, "strides": strides}


def _can_be_mapped(matrix: Placement, box: Box) -> bool:
    """Whether a tensor map can describe a matrix: neighbours along its lines, each at a multiple of 16 bytes."""
    along = 1 if box.order == "row" else 0
    if matrix.shape[along] > 1 and matrix.strides[along] != matrix.dtype.itemsize:
        return False
    pitch = _pitch_bytes(matrix, box)
    return pitch > 0 and (matrix.pointer | pitch) % TMA_ALIGNMENT == 0


def _ends_with_a_granule(matrix: Placement, box: Box) -> bool:
    """Whether TMA can store a matrix: it clips a line by 16 bytes, and would write over what follows a shorter end.

    Seen on an H200. Boxes that are loaded are clipped by elements.
    """
    length = matrix.shape[1 if box.order == "row" else 0]
    return length * matrix.dtype.itemsize % TMA_ALIGNMENT == 0


def _pitch_bytes(matrix: Placement, box: Box) -> int:
    """Bytes from line to line; where there is one line only, any that a map takes."""
    line = 0 if box.order == "row" else 1
    if matrix.shape[line] > 1 and min(matrix.shape) > 0:
        return matrix.strides[line]
    return round_up(max(matrix.shape[1 - line], 1) * matrix.dtype.itemsize, TMA_ALIGNMENT)


def _with_map(desc: Gemm, name: str, matrix: Placement, box: Box, somewhere: int) -> Placement:
    """The matrix with a tensor map; boxes that it brings have zeros past the edges."""
    from cuda.core._tensor_map import TensorMapL2Promotion, TensorMapSwizzle
    from cuda.core.utils import StridedMemoryView

    view = StridedMemoryView.from_any_interface(_Lines(matrix, box, somewhere), stream_ptr=-1)
    tensor_map = view.as_tensor_map(
        box_dim=(box.lines, box.length),
        swizzle=getattr(TensorMapSwizzle, _SWIZZLES[box.swizzle]),
        l2_promotion=TensorMapL2Promotion.L2_256B,
    )
    plain = matrix.plain_type(name)
    mapped = MappedType(plain.dtype, plain.layout, plain.mutable, desc, name)
    return replace(matrix, numba_type=mapped, tensor_map=tensor_map)


class _Lines:
    """Memory of a matrix, line after line, for a tensor map; an empty matrix counts as one element somewhere."""

    def __init__(self, matrix: Placement, box: Box, somewhere: int):
        lines, length = matrix.shape if box.order == "row" else matrix.shape[::-1]
        self.__cuda_array_interface__ = {
            "shape": (max(lines, 1), max(length, 1)),
            "strides": (_pitch_bytes(matrix, box), matrix.dtype.itemsize),
            "typestr": f"<u{matrix.dtype.itemsize}",
            "data": (matrix.pointer if min(matrix.shape) > 0 else somewhere, False),
            "version": 3,
            "stream": None,
        }
