"""Numba's types of the float8 numbers of ml_dtypes: numba-cuda has them, but does not know that arrays hold them."""

import functools
from typing import Any

import ml_dtypes
import numpy as np
from numba.cuda.np import numpy_support

NAMES = ("float8_e4m3fn", "float8_e5m2")

_DTYPES = {np.dtype(getattr(ml_dtypes, name)): name for name in NAMES}


@functools.cache
def numba_types() -> dict[str, Any]:
    """Numba's types by our names. Their module, which it offers nowhere else, takes long to import."""
    from numba.cuda._internal.cuda_fp8 import fp8_e4m3, fp8_e5m2

    return dict(zip(NAMES, (fp8_e4m3._nbtype, fp8_e5m2._nbtype), strict=True))


class _TypesOfElements(dict[Any, Any]):
    """Numba's table from a dtype to a type, with float8 from when it is first asked for."""

    def get(self, dtype: Any, default: Any = None) -> Any:
        return numba_types()[_DTYPES[dtype]] if dtype in _DTYPES else super().get(dtype, default)


def register() -> None:
    """Let Numba type arrays of float8, as it does those of bfloat16; it offers no hook for this."""
    numpy_support.FROM_DTYPE = _TypesOfElements(numpy_support.FROM_DTYPE)
