"""Products by wgmma on sm_90a: nothing but wgmma, waited for once a call, its accumulators in place."""

import re
import subprocess
import tempfile
from itertools import product

import numpy as np
import pytest
from cuda.core import Program, ProgramOptions
from numba import cuda

import devmath
from devmath.lto.compile import INCLUDE_FOLDER
from tests import kernels
from tests.compile.harness import CUOBJDUMP, array, link, scalar

ORDERS = {"r": "row", "c": "col"}
#: (m, n, k, threads) and passes.
PRODUCTS = [
    ((64, 64, 64, 128), 1),
    ((128, 128, 64, 256), 1),
    ((128, 256, 64, 256), 1),
    ((64, 104, 32, 128), 1),
    ((100, 72, 48, 128), 2),
]

each_product = pytest.mark.parametrize(("size", "passes"), PRODUCTS, ids=["x".join(map(str, x)) for x, _ in PRODUCTS])

#: One kernel for each width and type of the instruction.
EVERY_WIDTH = """\
#include <devmath/wgmma.cuh>
using namespace devmath;

template <int kN, typename Element>
__global__ void multiply(float* gmem) {
  __shared__ alignas(1024) char smem[kN * 32];
  const MatrixDescriptor matrix(smem_address(smem), 256, 256, 2);
  float sums[kN / 2];
  for (int i = 0; i < kN / 2; ++i) sums[i] = gmem[i * 128 + threadIdx.x];
  wgmma_fence();
  Wgmma<kN>::template multiply<kN / 8 % 2, kN / 16 % 2>(sums, matrix, matrix, Element());
  wgmma_wait();
  for (int i = 0; i < kN / 2; ++i) pin_register(sums[i]);
  for (int i = 0; i < kN / 2; ++i) gmem[i * 128 + threadIdx.x] = sums[i];
}
"""


def descriptor(size, dtype="float16", orders="rrr", **fields):
    m, n, k, threads = size
    names = {f"{operand}_order": ORDERS[order] for operand, order in zip("abc", orders, strict=True)}
    mm = devmath.Gemm(m, n, k, dtype, threads=threads, **names, **fields)
    assert mm.plan_on("sm_90a").variant == "wgmma"
    return mm


def build(make, mm):
    operand, result, number = array(mm.dtype), array(mm.c_dtype), scalar(mm.accumulator_dtype)
    arguments = {
        kernels.gemm_tile: (number, operand, operand, number, result),
        kernels.gemm_accumulator: (operand, operand, result),
        kernels.gemm_bias: (operand, operand, array(mm.accumulator_dtype, 1), result),
    }[make]
    binary = link(make(mm), arguments, "sm_90a")
    binary.assert_clean()  # also no remark of ptxas that it serialised
    return binary


def assert_multiplies(binary, instructions):
    assert binary.count("HGMMA") == instructions
    assert binary.count("HMMA") == binary.count("LDSM") == 0


@each_product
@pytest.mark.parametrize("orders", ["rcr", "rrr", "crr"])
def test_a_register_form_in_a_loop_over_k(size, passes, orders):
    binary = build(kernels.gemm_accumulator, descriptor(size, orders=orders))
    assert_multiplies(binary, passes * size[2] // 16)


@each_product
@pytest.mark.parametrize("orders", ["rcr", "ccc"])
def test_a_tile_form_has_the_code_of_one_pass(size, passes, orders):
    assert_multiplies(build(kernels.gemm_tile, descriptor(size, orders=orders)), size[2] // 16)


def test_an_epilogue_keeps_its_accumulator_in_registers():
    assert_multiplies(build(kernels.gemm_bias, descriptor((128, 256, 64, 256), orders="rcr")), 4)


def test_a_16_bit_result():
    mm = descriptor((64, 128, 64, 128), "bfloat16", "rcr", c_dtype="bfloat16")
    assert_multiplies(build(kernels.gemm_tile, mm), 4)


def test_the_instruction_has_every_width():
    widths = range(8, 257, 8)
    types_of_elements = {"": "Half", ".BF16": "BFloat16"}
    instances = "".join(
        f"template __global__ void multiply<{width}, {name}>(float*);\n"
        for width, name in product(widths, types_of_elements.values())
    )
    options = ProgramOptions(arch="sm_90a", std="c++17", include_path=str(INCLUDE_FOLDER))
    cubin = Program(EVERY_WIDTH + instances, "c++", options=options).compile("cubin").code
    found = re.findall(r"HGMMA\.64x(\d+)x16\.F32(\.BF16)? R\d+, gdesc\[UR\d+\](\.tnspA)?(\.tnspB)?", sass(cubin))
    expected = [
        (str(width), suffix, ".tnspA" * (width // 8 % 2), ".tnspB" * (width // 16 % 2))
        for width, suffix in product(widths, types_of_elements)
    ]
    assert sorted(found) == sorted(expected)


def sass(cubin):
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run([CUOBJDUMP, "-sass", file.name], capture_output=True, text=True, check=True)
    return done.stdout


def test_an_array_of_the_users_own_is_multiplied_by_mma_sync():
    mm = descriptor((64, 64, 32, 128))

    @cuda.jit
    def kernel(a, b, c):
        sa, sb = cuda.shared.array((64, 32), np.float16), devmath.shared(mm.b)
        acc = devmath.accumulator(mm)
        thread = cuda.threadIdx.x
        for i in range(thread, 64 * 32, 128):
            sa[i // 32, i % 32] = a[i // 32, i % 32]
        devmath.load(b, sb)
        devmath.wait()
        devmath.gemm(mm, sa, sb, acc)
        devmath.store(acc, c)

    binary = link(kernel, (array("float16"), array("float16"), array("float32")), "sm_90a")
    binary.assert_clean()
    assert binary.count("HMMA.16816.F32") == 8 * 2  # 16 x 64 a warp, 32 of k
    assert binary.count("HGMMA") == 0


@pytest.mark.parametrize("arch", ["sm_80", "sm_100a"])
def test_other_targets_have_mma_sync(arch):
    mm = descriptor((64, 64, 64, 128))
    binary = link(kernels.gemm_accumulator(mm), (array("float16"), array("float16"), array("float32")), arch)
    binary.assert_clean()
    assert binary.count("HMMA") > 0
