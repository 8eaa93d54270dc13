"""Arrays of float8 as Numba types them, before it has compiled any kernel and in one."""

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from numba import cuda, float32
from numba.cuda.typing.typeof import typeof

from devmath.frontends.numba_cuda.types import element_name
from tests.compile.harness import array, link


@pytest.mark.parametrize(("name", "in_numba"), [("float8_e4m3fn", "fp8_e4m3"), ("float8_e5m2", "fp8_e5m2")])
def test_arrays_of_ml_dtypes_have_a_type_from_the_import_on(name, in_numba):
    script = (
        "import sys, devmath, ml_dtypes, numpy as np\n"
        "assert 'numba.cuda._internal.cuda_fp8' not in sys.modules\n"
        "from numba.cuda.typing.typeof import typeof\n"
        f"print(typeof(np.zeros((2, 3), ml_dtypes.{name})), typeof(np.zeros(2, ml_dtypes.bfloat16)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"array({in_numba}, 2d, C) array(__nv_bfloat16, 1d, C)"
    assert element_name(typeof(np.zeros((2, 3), getattr(ml_dtypes, name)))) == name


def test_an_element_of_an_array_is_what_numba_makes_of_it():
    @cuda.jit
    def kernel(a, out):
        out[0] = float32(a[0, 0])

    link(kernel, (array("float8_e4m3fn"), array("float32", 1)), "sm_90a")
