"""Products with float16 sums as machine code: the instruction that keeps two of them in a register."""

import pytest

import devmath
from devmath.lto.arch import ARCHITECTURES
from tests import kernels
from tests.compile.harness import array, link, scalar


def instruction(dtype, arch):
    return "QMMA.16832.F16" if dtype != "float16" and arch in ("sm_89", "sm_120a") else "HMMA.16816.F16"


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("make", [kernels.gemm_tile, kernels.gemm_accumulator, kernels.gemm_by_hand])
@pytest.mark.parametrize("dtype", ["float16", "float8_e4m3fn"])
def test_sums_stay_in_registers(dtype, make, arch):
    mm = devmath.Gemm(64, 48, 64, dtype, accumulator_dtype="float16")
    a, c, number = array(dtype), array("float16"), scalar("float16")
    arguments = {
        kernels.gemm_tile: (number, a, a, number, c),
        kernels.gemm_accumulator: (a, a, c),
        kernels.gemm_by_hand: (a, a, array("float16", 1), array("float32")),
    }[make]
    binary = link(make(mm), arguments, arch)
    binary.assert_clean()
    multiplies = binary.count(instruction(dtype, arch))
    assert multiplies > 0
    assert sum(n for name, n in binary.opcodes.items() if "MMA" in name) == multiplies
