"""The element types of devmath: one table, one row a type."""

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np


@dataclass(frozen=True)
class DType:
    """One element type.

    Parameters
    ----------
    name : str
        NumPy's name, which is Numba's too.
    numpy : numpy.dtype
        The NumPy dtype; bfloat16 and the float8 types are those of ``ml_dtypes``.
    cpp : str
        Name in our CUDA C++, in namespace ``devmath``.
    accumulator : str
        Name of the type that sums products of this one.
    real : str
        Name of the type of the real part; the type itself where it is real.
    partners : tuple of str
        Names of the other types that it is multiplied with.
    """

    name: str
    numpy: np.dtype
    cpp: str
    accumulator: str
    real: str
    partners: tuple[str, ...] = ()

    @property
    def itemsize(self) -> int:
        """Bytes an element."""
        return self.numpy.itemsize

    @property
    def is_complex(self) -> bool:
        """True for complex64 and complex128."""
        return self.real != self.name

    @property
    def is_integer(self) -> bool:
        """True for the integers."""
        return self.numpy.kind in "iu"

    def converts_to(self, other: "DType") -> bool:
        """Whether `devmath.store` converts this type to another one.

        Complex numbers to complex ones; real ones, and integers, to floating point, rounded once; integers to integers
        that hold all of them.
        """
        if self.is_integer and other.is_integer:
            return np.can_cast(self.numpy, other.numpy)
        return self.is_complex == other.is_complex and not other.is_integer


_TABLE = (
    DType("float16", np.dtype(np.float16), "Half", "float32", "float16"),
    DType("bfloat16", np.dtype(ml_dtypes.bfloat16), "BFloat16", "float32", "bfloat16"),
    DType("float32", np.dtype(np.float32), "float", "float32", "float32"),
    DType("float64", np.dtype(np.float64), "double", "float64", "float64"),
    DType("complex64", np.dtype(np.complex64), "Complex<float>", "complex64", "float32"),
    DType("complex128", np.dtype(np.complex128), "Complex<double>", "complex128", "float64"),
    DType("int8", np.dtype(np.int8), "i8", "int32", "int8", ("uint8",)),
    DType("uint8", np.dtype(np.uint8), "u8", "int32", "uint8", ("int8",)),
    DType("int32", np.dtype(np.int32), "int", "int32", "int32"),
    DType(
        "float8_e4m3fn", np.dtype(ml_dtypes.float8_e4m3fn), "Float8E4M3", "float32", "float8_e4m3fn", ("float8_e5m2",)
    ),
    DType("float8_e5m2", np.dtype(ml_dtypes.float8_e5m2), "Float8E5M2", "float32", "float8_e5m2", ("float8_e4m3fn",)),
)

BY_NAME = {row.name: row for row in _TABLE}


def lookup(dtype: Any, argument: str = "dtype", allowed: tuple[str, ...] = tuple(BY_NAME)) -> DType:
    """Return the table row of anything NumPy takes for a dtype, or of a row's name.

    Raises
    ------
    TypeError
        If `dtype` is no dtype, or none of `allowed`; the message names `argument`.
    """
    if isinstance(dtype, DType):
        name = dtype.name
    elif isinstance(dtype, str) and dtype in BY_NAME:
        name = dtype
    else:
        try:
            name = np.dtype(dtype).name
        except TypeError:
            name = repr(dtype)
    if name not in allowed:
        raise TypeError(f"{argument} must be one of {', '.join(allowed)}, got {name}")
    return BY_NAME[name]
