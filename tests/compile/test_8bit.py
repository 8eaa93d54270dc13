"""Products of 8-bit numbers as machine code: the instruction of each mix, elements of float8, plain arrays."""

from itertools import product

import numpy as np
import pytest
from numba import cuda

import devmath
from devmath.lto.arch import ARCHITECTURES
from tests import kernels
from tests.compile.harness import array, link

NAMES = {"int8": "S8", "uint8": "U8", "float8_e4m3fn": "E4M3", "float8_e5m2": "E5M2"}
INTEGER, FLOAT8 = ("int8", "uint8"), ("float8_e4m3fn", "float8_e5m2")
MIXES = [*product(INTEGER, INTEGER), *product(FLOAT8, FLOAT8)]
HALVES = "HMMA.16816.F32"

PLAIN = devmath.Gemm(32, 16, 32, "int8", a_order="col")


def build(kernel, arguments, arch="sm_90a"):
    binary = link(kernel, arguments, arch)
    binary.assert_clean()
    return binary


def instruction(a, b, arch):
    """The multiply of a mix; where tensor cores have none for float8, that of halves."""
    if a in INTEGER:
        return f"IMMA.16832.{NAMES[a]}.{NAMES[b]}"
    return f"QMMA.16832.F32.{NAMES[a]}.{NAMES[b]}" if arch in ("sm_89", "sm_120a") else HALVES


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize(("a", "b"), MIXES, ids="-".join)
def test_a_mix_is_multiplied_by_its_instruction_alone(a, b, arch):
    """As few multiplies as there can be for a warp's quarter of 64 x 64 x 64, all operands by four matrices at once."""
    mm = devmath.Gemm(64, 64, 64, a, b_dtype=b, force_variant="mma_sync", threads=128)
    binary = build(kernels.gemm_accumulator(mm), (array(a), array(b), array(mm.accumulator_dtype)), arch)
    name = instruction(a, b, arch)
    multiplies = binary.count(name)
    assert multiplies == 64 * 64 * 64 // 4 // (16 * 8 * (16 if name == HALVES else 32))
    assert sum(binary.count(other) for other in ("IMMA", "QMMA", "HMMA")) == multiplies
    assert binary.count("LDSM.16.M88.4") == binary.count("LDSM") > 0


@pytest.mark.parametrize("arch", ["sm_80", "sm_89", "sm_90a"])
@pytest.mark.parametrize("dtype", FLOAT8)
def test_elements_of_a_float8_tile_are_converted_in_place(dtype, arch):
    mm = devmath.Gemm(32, 32, 32, dtype)
    binary = build(kernels.tile_elements(mm), (array(dtype), array("float32"), array(dtype)), arch)
    converts = sum(n for name, n in binary.opcodes.items() if "SATFINITE" in name)
    assert (converts > 0) == (arch != "sm_80")


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_bytes_across_the_lines_are_transposed_in_registers(arch):
    """A tile of A in column order is loaded four bytes at a time, and permuted."""
    mm = devmath.Gemm(64, 64, 64, "int8", a_order="col")

    @cuda.jit
    def kernel(a, c):
        tile = devmath.shared(mm.a)
        devmath.load(a, tile)
        devmath.wait()
        devmath.store(tile, c)

    column_ordered = array("int8", layout="F")
    assert build(kernel, (column_ordered, array("int8")), arch).count("PRMT") >= 8


def test_plain_arrays_of_bytes():
    @cuda.jit
    def kernel(a, b, c):
        pa, pb = cuda.shared.array((32, 32), np.int8), devmath.shared(PLAIN.b)
        acc = devmath.accumulator(PLAIN)
        devmath.load(b, pb)
        pa[cuda.threadIdx.x, 0] = a[cuda.threadIdx.x, 0]
        devmath.wait()
        devmath.gemm(PLAIN, pa, pb, acc)
        devmath.store(acc, c)

    assert build(kernel, (array("int8"), array("int8"), array("int32"))).count("IMMA") > 0
