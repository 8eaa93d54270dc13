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
        The NumPy dtype; bfloat16 is ``ml_dtypes.bfloat16``.
    cpp : str
        Name in our CUDA C++, in namespace ``devmath``.
    accumulator : str
        Name of the type that sums products of this one.
    real : str
        Name of the type of the real part; the type itself where it is real.
    """

    name: str
    numpy: np.dtype
    cpp: str
    accumulator: str
    real: str

    @property
    def itemsize(self) -> int:
        """Bytes an element."""
        return self.numpy.itemsize

    @property
    def is_complex(self) -> bool:
        """True for complex64 and complex128."""
        return self.real != self.name


_TABLE = (
    DType("float16", np.dtype(np.float16), "Half", "float32", "float16"),
    DType("bfloat16", np.dtype(ml_dtypes.bfloat16), "BFloat16", "float32", "bfloat16"),
    DType("float32", np.dtype(np.float32), "float", "float32", "float32"),
    DType("float64", np.dtype(np.float64), "double", "float64", "float64"),
    DType("complex64", np.dtype(np.complex64), "Complex<float>", "complex64", "float32"),
    DType("complex128", np.dtype(np.complex128), "Complex<double>", "complex128", "float64"),
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
