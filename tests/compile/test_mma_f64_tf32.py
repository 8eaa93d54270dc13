"""Products by mma.sync in float64 and tf32 as machine code: inlined, in registers, on every architecture."""

import pytest

import devmath
from devmath.lto.arch import ARCHITECTURES, compute_capability
from tests import kernels
from tests.compile.harness import array, link, scalar

FIELDS = {
    "float64": {"dtype": "float64", "force_variant": "mma_f64"},
    "tf32": {"dtype": "float32", "math": "tf32", "force_variant": "mma_tf32"},
    "3xtf32": {"dtype": "float32", "math": "3xtf32", "force_variant": "mma_tf32"},
}
MULTIPLY = {"float64": "DMMA", "tf32": "HMMA.1688.F32.TF32", "3xtf32": "HMMA.1688.F32.TF32"}
ORDERS = {"r": "row", "c": "col"}

on_all_architectures = pytest.mark.parametrize("arch", ARCHITECTURES)
in_each_arithmetic = pytest.mark.parametrize("arithmetic", FIELDS)


def build(make, arithmetic, size, arch="sm_90a", orders="rrr", **fields):
    """Compile a kernel for a product in one arithmetic."""
    names = {f"{operand}_order": ORDERS[order] for operand, order in zip("abc", orders, strict=True)}
    mm = devmath.Gemm(*size, **FIELDS[arithmetic], **names, **fields)
    dtype = mm.dtype.name
    operand = array(dtype)
    arguments = {
        kernels.gemm_tile: (scalar(dtype), operand, operand, scalar(dtype), operand),
        kernels.gemm_accumulator: (operand, operand, operand),
        kernels.gemm_bias: (operand, operand, array(dtype, 1), operand),
    }[make]
    binary = link(make(mm), arguments, arch)
    binary.assert_clean()
    if make is not kernels.gemm_tile:  # which adds beta * C
        assert binary.count("DFMA") == binary.count("FFMA") == 0
    return binary


@on_all_architectures
@in_each_arithmetic
def test_a_tile_form_links_for_each_architecture(arithmetic, arch):
    binary = build(kernels.gemm_tile, arithmetic, (32, 32, 32), arch)
    assert binary.count(MULTIPLY[arithmetic]) > 0


@on_all_architectures
@in_each_arithmetic
def test_an_accumulator_stays_in_registers(arithmetic, arch):
    """A warp multiplies 2 x 4 blocks of 16 x 8 x 16, each by as few instructions as there can be."""
    binary = build(kernels.gemm_accumulator, arithmetic, (64, 64, 16), arch)
    if arithmetic == "float64":
        each = 1 if compute_capability(arch) == (9, 0) else 8  # others have 8 x 8 x 4 alone
    else:
        each = {"tf32": 2, "3xtf32": 6}[arithmetic]
    assert binary.count(MULTIPLY[arithmetic]) == 8 * each


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a"])
@pytest.mark.parametrize("size", [(64, 64, 32), (128, 128, 32), (50, 37, 19)])
@in_each_arithmetic
def test_an_epilogue_keeps_its_accumulator_in_registers(arithmetic, size, arch):
    assert build(kernels.gemm_bias, arithmetic, size, arch).count(MULTIPLY[arithmetic]) > 0


@pytest.mark.parametrize("orders", ["rcr", "crr", "ccc"])
@pytest.mark.parametrize("size", [(64, 64, 32), (33, 47, 19)])
@in_each_arithmetic
def test_each_order_links(arithmetic, size, orders):
    assert build(kernels.gemm_tile, arithmetic, size, orders=orders).count(MULTIPLY[arithmetic]) > 0


@pytest.mark.parametrize("threads", [32, 96, 256, 384, 1024])
@in_each_arithmetic
def test_each_number_of_threads_links(arithmetic, threads):
    assert build(kernels.gemm_tile, arithmetic, (64, 64, 32), threads=threads).count(MULTIPLY[arithmetic]) > 0


@pytest.mark.parametrize(("orders", "matrices"), [("rcr", 12), ("rrr", 8), ("crr", 0)])
def test_tf32_reads_by_ldmatrix_where_k_runs_along_lines(orders, matrices):
    """Four matrices at a time: eight loads of A and four of B for 64 x 32 x 16."""
    binary = build(kernels.gemm_accumulator, "tf32", (128, 128, 16), orders=orders)
    assert binary.count("LDSM.16.M88.4") == binary.count("LDSM") == matrices


@pytest.mark.parametrize(("orders", "pairs"), [("rcr", 16), ("rrr", 8), ("crr", 0)])
def test_float64_reads_pairs_where_k_runs_along_lines(orders, pairs):
    """Eight of A and eight of B for 32 x 32 x 16."""
    assert build(kernels.gemm_accumulator, "float64", (64, 64, 16), orders=orders).count("LDS.128") == pairs
