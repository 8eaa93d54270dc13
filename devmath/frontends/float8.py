"""Numba's types of the float8 numbers of ml_dtypes: numba-cuda has them, but does not know that arrays hold them.

Its module of them takes longer to import than all of devmath: it waits for the first array that holds such numbers.
"""

import functools
import importlib
import sys
from typing import Any

import ml_dtypes
import numpy as np
from numba.cuda.np import numpy_support

NAMES = ("float8_e4m3fn", "float8_e5m2")
_MODULE = "numba.cuda._internal.cuda_fp8"
_DTYPES = {np.dtype(getattr(ml_dtypes, name)): name for name in NAMES}


@functools.cache
def numba_types() -> dict[str, Any]:
    """Numba's type of each float8 number, by our name."""
    module = importlib.import_module(_MODULE)  # it offers them nowhere else

    return {"float8_e4m3fn": module.fp8_e4m3._nbtype, "float8_e5m2": module.fp8_e5m2._nbtype}


def name_of(numba_type: Any) -> str | None:
    """Our name of a float8 type; None for any other. Where Numba's module has not been imported there is none."""
    if _MODULE not in sys.modules:
        return None
    return next((name for name, ty in numba_types().items() if ty == numba_type), None)


class _TypesOfDtypes(dict[Any, Any]):
    """Numba's table of NumPy dtypes, which it asks by `get`."""

    def get(self, dtype: Any, default: Any = None) -> Any:
        return numba_types()[_DTYPES[dtype]] if dtype in _DTYPES else super().get(dtype, default)


def register() -> None:
    """Let Numba type arrays of float8, as it does those of bfloat16."""
    numpy_support.FROM_DTYPE = _TypesOfDtypes(numpy_support.FROM_DTYPE)
