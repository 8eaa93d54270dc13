"""Numba's types of the float8 numbers of ml_dtypes: numba-cuda has them, but does not know that arrays hold them."""

import ml_dtypes
import numpy as np
from numba.cuda._internal.cuda_fp8 import fp8_e4m3, fp8_e5m2  # it offers them nowhere else
from numba.cuda.np.numpy_support import FROM_DTYPE

TYPES = {"float8_e4m3fn": fp8_e4m3._nbtype, "float8_e5m2": fp8_e5m2._nbtype}


def register() -> None:
    """Let Numba type arrays of float8, as it does those of bfloat16."""
    for name, numba_type in TYPES.items():
        FROM_DTYPE.setdefault(np.dtype(getattr(ml_dtypes, name)), numba_type)
