"""Products as machine code: inlined, in registers, by the instructions meant, on every architecture."""

import pytest

import devmath
from devmath.lto.arch import ARCHITECTURES
from devmath.lto.variants import GEMM_VARIANTS
from tests import kernels
from tests.cases import GEMM_CASES
from tests.compile.harness import array, link, scalar

#: One product for each element type; between them they use every variant.
EACH_DTYPE = [case for case in GEMM_CASES if case.small and (case.m, case.n) == (32, 32)]
#: Every other shape, order and number of threads of the table, for one type of each variant.
EVERY_SHAPE = [
    case
    for case in GEMM_CASES
    if case.dtype in ("float32", "float16", "int8", "float8_e5m2") and case not in EACH_DTYPE
]

#: What a product must be made of: the multiply, and the widest loads of its operands from shared memory.
MULTIPLY = {"float64": "DFMA", "complex128": "DFMA", "float32": "FFMA", "complex64": "FFMA"}
INSTRUCTIONS = {
    "wgmma": ("HGMMA",),
    "wgmma_tf32": ("HGMMA",),
    "mma_f64": ("DMMA",),
    "mma_tf32": ("HMMA.1688.F32.TF32",),
    "fma": ("LDS.128",),
}

on_all_architectures = pytest.mark.parametrize("arch", ARCHITECTURES)


def arguments(make, mm):
    """Types of the arguments of a kernel of tests/kernels.py."""
    a, b, c, number = array(mm.dtype), array(mm.b_dtype), array(mm.c_dtype), scalar(mm.accumulator_dtype)
    return {
        kernels.gemm_tile: (number, a, b, number, c),
        kernels.gemm_accumulator: (a, b, c),
        kernels.gemm_bias: (a, b, array(mm.accumulator_dtype, 1), c),
        kernels.gemm_by_hand: (a, b, array(mm.accumulator_dtype, 1), c),
    }[make]


def build(make, mm, arch="sm_90a"):
    binary = link(make(mm), arguments(make, mm), arch)
    binary.assert_clean()
    return binary


def assert_multiplies(mm, binary, arch="sm_90a"):
    variant = mm.plan_on(arch).variant
    names = [MULTIPLY[mm.dtype.name]] if variant == "fma" else []
    if mm.dtype.itemsize == 1 and variant == "wgmma":
        names = ["IGMMA" if mm.accumulator_dtype.kind == "i" else "QGMMA"]
    elif variant == "mma_sync":
        names = [mma_sync(mm, arch), "LDSM.16"]
    else:
        names += INSTRUCTIONS[variant]
    assert [name for name in names if not binary.count(name)] == []


def mma_sync(mm, arch):
    """The multiply of a warp. Where there is none for float8, ptxas or we have two for halves."""
    if mm.accumulator_dtype.kind == "i":
        return "IMMA.16832"
    has_float8 = "float8" in mm.dtype.name and arch in ("sm_89", "sm_120a")
    return f"{'QMMA.16832' if has_float8 else 'HMMA.16816'}.F{8 * mm.accumulator_dtype.itemsize}"


def test_the_cases_cover_every_variant_and_dtype():
    tried = {(case.descriptor().plan_on(arch).variant, case.dtype) for case in GEMM_CASES for arch in ARCHITECTURES}
    assert tried == {(variant.name, dtype) for variant in GEMM_VARIANTS for dtype in variant.dtypes}


@on_all_architectures
@pytest.mark.parametrize("case", EACH_DTYPE, ids=str)
def test_each_dtype_links_for_each_architecture(case, arch):
    mm = case.descriptor()
    binary = build(kernels.gemm_tile, mm, arch)
    assert_multiplies(mm, binary, arch)
    assert any(name.startswith("LDGSTS") and ".128" in name for name in binary.opcodes), "no asynchronous 16-byte copy"


@on_all_architectures
@pytest.mark.parametrize("dtype", ["float32", "complex64", "float16", "int8", "float8_e4m3fn"])
def test_an_accumulator_stays_in_registers(dtype, arch):
    mm = devmath.Gemm(64, 64, 32, dtype)
    assert_multiplies(mm, build(kernels.gemm_accumulator, mm, arch), arch)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(
    ("m", "n", "dtype", "threads"),
    [
        (128, 128, "complex64", 256),
        (64, 128, "complex128", 256),
        (128, 96, "float64", 512),
        (96, 128, "complex64", 512),
        (64, 96, "complex128", 512),
    ],
)
def test_the_most_accumulators_of_two_words_or_four_stay_in_registers(m, n, dtype, threads, arch):
    mm = devmath.Gemm(m, n, 32, dtype, threads=threads)
    assert_multiplies(mm, build(kernels.gemm_accumulator, mm, arch), arch)


@pytest.mark.parametrize("case", EVERY_SHAPE, ids=str)
def test_each_shape_links(case):
    mm = case.descriptor()
    assert_multiplies(mm, build(kernels.gemm_tile, mm))


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_120a"])
@pytest.mark.parametrize(
    "mm",
    [
        devmath.Gemm(128, 128, 32, "float32"),
        devmath.Gemm(64, 64, 64, "float16"),
        devmath.Gemm(128, 128, 64, "bfloat16"),
        devmath.Gemm(50, 37, 19, "float64"),
    ],
    ids=repr,
)
def test_an_epilogue_keeps_its_accumulator_in_registers(mm, arch):
    assert_multiplies(mm, build(kernels.gemm_bias, mm, arch), arch)


def test_a_hand_loop_over_a_small_accumulator_is_unrolled():
    build(kernels.gemm_by_hand, devmath.Gemm(64, 64, 64, "float16"))


def test_a_fragment_is_stored_rounded_to_16_bits():
    mm = devmath.Gemm(64, 64, 32, "bfloat16")
    kernel = kernels.gemm_accumulator(mm)
    link(kernel, (array("bfloat16"), array("bfloat16"), array("bfloat16")), "sm_90a").assert_clean()
