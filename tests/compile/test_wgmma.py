"""Products by wgmma on sm_90a: nothing but wgmma, waited for once a call, its accumulators in place."""

import re
import subprocess
import tempfile

import pytest
from cuda.core import Program, ProgramOptions
from numba import cuda

import devmath
from devmath.lto.compile import INCLUDE_FOLDER
from devmath.lto.gemm_wgmma_tiling import instruction
from devmath.lto.tile_source import element_text
from tests import kernels
from tests.compile.harness import CUOBJDUMP, array, link, scalar
from tests.problems import problem

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

#: One kernel for each width and type of the instruction: A from shared memory, then from registers.
HEADER = """\
#include <devmath/wgmma.cuh>
using namespace devmath;
"""
EVERY_WIDTH = """\
template <int kN, typename A, typename B, typename Sum, bool kCanTranspose>
__global__ void multiply(Sum* gmem) {
  __shared__ alignas(1024) char smem[kN * 32];
  const MatrixDescriptor matrix(smem_address(smem), 256, 256, 2);
  constexpr int a_major = kCanTranspose ? kN / 8 % 2 : 0, b_major = kCanTranspose ? kN / 16 % 2 : 0;
  Sum sums[kN / 2];
  u32 a[4];
  for (int i = 0; i < kN / 2; ++i) sums[i] = gmem[i * 128 + threadIdx.x];
  for (int i = 0; i < 4; ++i) a[i] = ((u32*)gmem)[i * 128 + threadIdx.x];
  wgmma_fence();
  Wgmma<kN, A, B>::template multiply<a_major, b_major>(sums, matrix, matrix, true);
  Wgmma<kN, A, B>::template multiply_registers<b_major>(sums, a, matrix, true);
  wgmma_wait();
  for (int i = 0; i < kN / 2; ++i) pin_register(sums[i]);
  for (int i = 0; i < kN / 2; ++i) gmem[i * 128 + threadIdx.x] = sums[i];
}
"""
#: Element type, and the opcode of its instruction with 64 columns.
INSTRUCTIONS = {
    "float16": "HGMMA.64x{}x16.F32",
    "bfloat16": "HGMMA.64x{}x16.F32.BF16",
    "float32": "HGMMA.64x{}x8.F32.TF32",
    "int8": "IGMMA.64x{}x32.S8.S8",
    "float8_e4m3fn": "QGMMA.64x{}x32.F32.E4M3.E4M3",
    "float8_e5m2": "QGMMA.64x{}x32.F32.E5M2.E5M2",
}


def descriptor(size, dtype="float16", orders="rrr", **fields):
    m, n, k, threads = size
    names = {f"{operand}_order": ORDERS[order] for operand, order in zip("abc", orders, strict=True)}
    mm = devmath.Gemm(m, n, k, dtype, threads=threads, **names, **fields)
    assert mm.plan_on("sm_90a").variant.startswith("wgmma")
    return mm


def build(make, mm):
    a, b, result, number = array(mm.dtype), array(mm.b_dtype), array(mm.c_dtype), scalar(mm.accumulator_dtype)
    arguments = {
        kernels.gemm_tile: (number, a, b, number, result),
        kernels.gemm_accumulator: (a, b, result),
        kernels.gemm_bias: (a, b, array(mm.accumulator_dtype, 1), result),
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


@pytest.mark.parametrize("dtype", INSTRUCTIONS)
def test_the_instruction_has_every_width_and_both_places_of_a(dtype):
    arguments = problem(64, 256, 64, dtype)
    widths = [n for n in range(8, 257, 8) if not arguments.a.is_integer or n <= 32 or n % 16 == 0]
    element, sums = element_text(arguments.a), element_text(arguments.accumulator)
    can_transpose = arguments.a.itemsize == 2
    declared = "\n".join(instruction(arguments, width) for width in widths)
    instances = "\n".join(
        f"template __global__ void multiply<{width}, {element}, {element}, {sums}, {int(can_transpose)}>({sums}*);"
        for width in widths
    )
    options = ProgramOptions(arch="sm_90a", std="c++17", include_path=str(INCLUDE_FOLDER))
    text = "\n".join((HEADER, declared, EVERY_WIDTH, instances))
    cubin = Program(text, "c++", options=options).compile("cubin").code
    expected = set()
    for width in widths:
        opcode = INSTRUCTIONS[dtype].format(width)
        in_a, in_b = (
            ".tnsp" + name if can_transpose and width // unit % 2 else "" for name, unit in (("A", 8), ("B", 16))
        )
        expected |= {(opcode, f"gdesc{in_a}{in_b}"), (opcode, f"R, gdesc{in_b}")}
    found = re.findall(r"([HQI]GMMA[\w.]+) R\d+, (R\d+, )?(gdesc)\[UR\d+\]([.\w]*)", sass(cubin))
    assert {
        (opcode, ("R, " if register else "") + where + majors) for opcode, register, where, majors in found
    } == expected


def sass(cubin):
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run([CUOBJDUMP, "-sass", file.name], capture_output=True, text=True, check=True)
    return done.stdout


@each_product
@pytest.mark.parametrize("orders", ["rcr", "rrr", "crc"])
@pytest.mark.parametrize("make", [kernels.gemm_accumulator, kernels.gemm_tile])
def test_tf32_in_each_order(make, size, passes, orders):
    """The transposition is the business of the load."""
    m, n, k, threads = size
    binary = build(make, descriptor((m, n, k // 2, threads), "float32", orders, math="tf32"))
    assert_multiplies(binary, k // 16 * (passes if make is kernels.gemm_accumulator else 1))


@each_product
@pytest.mark.parametrize(
    ("a", "b", "opcode"),
    [
        ("int8", "uint8", "IGMMA"),
        ("uint8", "uint8", "IGMMA"),
        ("float8_e4m3fn", "float8_e5m2", "QGMMA"),
        ("float8_e5m2", "float8_e5m2", "QGMMA"),
    ],
)
def test_bytes_of_each_mix(size, passes, a, b, opcode):
    m, n, k, threads = size
    mm = descriptor((m, n, 2 * k, threads), a, "crr", b_dtype=b)
    binary = build(kernels.gemm_accumulator, mm)
    assert binary.count(opcode) == passes * k // 16
    assert binary.count("IMMA") == binary.count("HMMA") == binary.count("LDSM") == 0


@pytest.mark.parametrize(("dtype", "opcode"), [("int8", "IGMMA"), ("float8_e4m3fn", "QGMMA")])
def test_bytes_in_a_tile_form(dtype, opcode):
    assert build(kernels.gemm_tile, descriptor((128, 104, 96, 256), dtype, "rcr")).count(opcode) == 3


@pytest.mark.parametrize("size", [size for size, _ in PRODUCTS], ids=str)
@pytest.mark.parametrize("orders", ["rcr", "crr"])
@pytest.mark.parametrize("make", [kernels.gemm_accumulator, kernels.gemm_bias])
def test_three_terms_take_three_instructions(make, size, orders):
    """A comes into registers by ldmatrix, a step of k at a time; in a pass the small part of B is written once."""
    m, n, k, threads = size
    mm = descriptor((m, n, k // 2, threads), "float32", orders, math="3xtf32")
    plan, binary = mm.plan_on("sm_90a"), build(make, mm)
    passes = plan.fragment.size * 2 // int(plan.template.split(",")[1])  # more than where sums are not kept twice
    assert binary.count("HGMMA") == 3 * passes * mm.k // 8
    assert binary.count("LDSM.16.M88.4") == passes * mm.k // 8
    assert binary.count("BAR.RED.OR") == 1


@pytest.mark.parametrize("make", [kernels.gemm_accumulator, kernels.gemm_tile])
@pytest.mark.parametrize("size", [(128, 128, 32, 256), (192, 104, 72, 384), (192, 160, 24, 384), (100, 72, 40, 128)])
def test_three_terms_stay_in_registers(make, size):
    assert build(make, descriptor(size, "float32", "rcr", math="3xtf32")).count("HGMMA") > 0


@pytest.mark.parametrize(
    ("dtype", "fields", "instruction"),
    [("float16", {}, "HMMA.16816.F32"), ("float32", {"math": "tf32"}, "HMMA.1688.F32.TF32")],
)
def test_an_array_of_the_users_own_is_multiplied_by_mma_sync(dtype, fields, instruction):
    mm = descriptor((64, 64, 32, 128), dtype, "crr", **fields)
    element = array(dtype).dtype

    @cuda.jit
    def kernel(a, b, c):
        sa, sb = cuda.shared.array((32, 64), element), devmath.shared(mm.b)
        acc = devmath.accumulator(mm)
        thread = cuda.threadIdx.x
        for i in range(thread, 64 * 32, 128):
            sa[i % 32, i // 32] = a[i // 32, i % 32]
        devmath.load(b, sb)
        devmath.wait()
        devmath.gemm(mm, sa, sb, acc)
        devmath.store(acc, c)

    binary = link(kernel, (array(dtype), array(dtype), array("float32")), "sm_90a")
    binary.assert_clean()
    assert binary.count(instruction) == 8 * 2  # 16 x 64 a warp, and 32 of k or as many as an iteration has
    assert binary.count("HGMMA") == 0


@pytest.mark.parametrize("arch", ["sm_80", "sm_100a"])
def test_other_targets_have_mma_sync(arch):
    mm = descriptor((64, 64, 64, 128))
    binary = link(kernels.gemm_accumulator(mm), (array("float16"), array("float16"), array("float32")), arch)
    binary.assert_clean()
    assert binary.count("HMMA") > 0
