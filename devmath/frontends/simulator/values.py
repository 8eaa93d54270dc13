"""What kernel code passes to a verb: arrays, numbers, and the words that messages have for them."""

from typing import Any

import ml_dtypes
import numpy as np
from numba.cuda.core.errors import TypingError
from numba.cuda.simulator import kernel
from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray, FakeWithinKernelCUDAArray
from numba.cuda.typing.typeof import typeof

from ...dtypes import BY_NAME, DType


def array_of(value: Any) -> np.ndarray | None:
    """The NumPy array behind an array of any memory space; None for anything else."""
    if isinstance(value, FakeWithinKernelCUDAArray):
        value = value._item
    if isinstance(value, FakeCUDAArray):
        value = value._ary
    return value if isinstance(value, np.ndarray) else None


def space_of(value: Any) -> str:
    """Memory space of an array: shared, local or global."""
    if not isinstance(value, np.ndarray):
        return "global"
    shared = kernel._get_kernel_context().shared
    allocations = (*shared._allocations.values(), shared._dynshared)
    return "shared" if any(np.may_share_memory(value, allocation) for allocation in allocations) else "local"


def element_name(array: np.ndarray) -> str:
    """Our name of an array's element type; NumPy's where it is none of ours."""
    return array.dtype.name if array.dtype.name in BY_NAME else str(array.dtype)


def is_c_ordered(array: np.ndarray) -> bool:
    """True where the last index runs over neighbours, and the others over what follows."""
    return array.flags.c_contiguous


def describe(value: Any) -> str:
    """A value in the words of an error message; tiles, fragments and descriptors have their own."""
    array = array_of(value)
    if array is not None:
        layout = "C" if is_c_ordered(array) else "F" if array.flags.f_contiguous else "A"
        return f"a {array.ndim}-D array of {element_name(array)}, layout {layout!r}"
    try:
        return str(typeof(value))
    except ValueError:  # Numba has no type for it
        return str(value)


def is_integer(value: Any) -> bool:
    """True for an integer scalar; a bool is none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """True for an integer, real or complex scalar; a bool is none."""
    return isinstance(value, int | float | complex | np.number | ml_dtypes.bfloat16) and not isinstance(value, bool)


def converts_to(value: Any, dtype: DType) -> bool:
    """True for a number that Numba converts to `dtype`: any but a complex one to a real type."""
    return is_number(value) and (dtype.is_complex or not np.iscomplexobj(value))


def convert(values: Any, dtype: np.dtype) -> np.ndarray:
    """`values` rounded to `dtype`; what is too large becomes infinite, silently as on a GPU."""
    with np.errstate(all="ignore"):
        return np.asarray(values).astype(dtype)


def poisoned(size: int, dtype: DType) -> np.ndarray:
    """Memory that nothing was written to: NaN in both parts."""
    return np.full(size, complex(np.nan, np.nan) if dtype.is_complex else np.nan, dtype.numpy)


def check_element(holder: Any, dtype: DType, value: Any) -> None:
    """Refuse to assign what does not convert to the elements of a tile or a fragment."""
    if not (converts_to(value, dtype) or isinstance(value, bool | np.bool_)):
        raise TypingError(f"{holder} holds {dtype.name}, got a value of type {describe(value)}")
