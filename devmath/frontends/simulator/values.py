"""What kernel code passes to a verb: arrays, numbers, and what they are to the rules."""

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numba.cuda.simulator import kernel
from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray, FakeWithinKernelCUDAArray
from numba.cuda.typing.typeof import typeof

from ...blas_device import Gemm, Operand
from ...dtypes import DType
from ...fft_device import FFT
from .. import operands, rules

_FLOAT8 = (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)

_KINDS = {
    "other": (bool, np.bool_),  # before the integers: a bool is an int
    "integer": (int, np.integer),
    "real": (float, np.floating, ml_dtypes.bfloat16, *_FLOAT8),
    "complex": (complex, np.complexfloating),
    "device function": kernel.FakeCUDAKernel,
}


def unwrap(value: Any) -> Any:
    """The NumPy array behind an array of any memory space; anything else as it is."""
    if isinstance(value, FakeWithinKernelCUDAArray):
        value = value._item
    if isinstance(value, FakeCUDAArray):
        value = value._ary
    return value


def space_of(value: Any) -> str:
    """Memory space of an array: shared, local or global."""
    if not isinstance(value, np.ndarray):
        return "global"
    shared = kernel._get_kernel_context().shared
    allocations = (*shared._allocations.values(), shared._dynshared)
    return "shared" if any(np.may_share_memory(value, allocation) for allocation in allocations) else "local"


@dataclass(frozen=True)
class _TypeOf:
    """Numba's type of a value: as text, and found only when a message needs it."""

    value: Any

    def __str__(self) -> str:
        try:
            return str(typeof(self.value))
        except ValueError:  # Numba has no type for it
            return str(self.value)


def argument(value: Any) -> operands.Argument:
    """What a value is to the rules."""
    held = operands.TileOperand | operands.StackOperand | operands.FragmentOperand | operands.VectorOperand
    held |= operands.TileIndexOperand
    if isinstance(value, Gemm | FFT | Operand | held):
        return value
    array = unwrap(value)
    if isinstance(array, np.ndarray):
        layout = "C" if array.flags.c_contiguous else "F" if array.flags.f_contiguous else "A"
        return operands.ArrayOperand(array.ndim, str(array.dtype), layout, array.flags.writeable)
    items = tuple(map(argument, value)) if isinstance(value, tuple) else ()
    kind = next((kind for kind, classes in _KINDS.items() if isinstance(value, classes)), "other")
    return operands.OtherOperand(_TypeOf(value), kind, items, int(value) if kind == "integer" else None)


def converts_to(value: Any, dtype: DType) -> bool:
    """True for what Numba converts to `dtype`: a bool, or any number but a complex one to a real type."""
    return isinstance(value, bool | np.bool_) or rules.converts_to(argument(value), dtype)


def convert(values: Any, dtype: np.dtype) -> np.ndarray:
    """`values` rounded to `dtype`; what is too large becomes infinite, silently as on a GPU, or the largest float8."""
    values = np.asarray(values)
    with np.errstate(all="ignore"):
        if dtype.type in _FLOAT8 and values.dtype != dtype:
            largest = float(ml_dtypes.finfo(dtype).max)
            values = np.clip(values.astype(np.float64), -largest, largest)
        return values.astype(dtype)


def poisoned(size: int, dtype: DType) -> np.ndarray:
    """Memory that nothing was written to: NaN in both parts; for integers a number hard to overlook."""
    return np.full(size, poison(dtype), dtype.numpy)


def poison(dtype: DType) -> Any:
    """What an element is that nobody set."""
    if dtype.is_integer:
        return np.frombuffer(b"\x5a" * dtype.itemsize, dtype.numpy)[0]
    return complex(np.nan, np.nan) if dtype.is_complex else np.nan


def wide_type(dtype: DType) -> Any:
    """What sums of many elements are taken in: double precision; of integers 64 bits."""
    return np.int64 if dtype.is_integer else np.complex128 if dtype.is_complex else np.float64


def element(values: Any, dtype: DType) -> Any:
    """An element as kernel code sees it: float8, with which Numba does not compute, as float32."""
    return np.float32(values) if dtype.numpy.type in _FLOAT8 else values


def as_tf32(values: np.ndarray) -> np.ndarray:
    """float32 as tensor cores read it: without the low 13 bits."""
    return (values.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
