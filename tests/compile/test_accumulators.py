"""Accumulators as machine code: wide accesses, shuffles, nothing in local memory."""

import pytest

import devmath
from devmath.lto.arch import ARCHITECTURES
from tests import accumulator_kernels as kernels
from tests.compile.harness import array, link

on_all_architectures = pytest.mark.parametrize("arch", ARCHITECTURES)


def build(kernel, argument_types, arch):
    binary = link(kernel, argument_types, arch)
    binary.assert_clean()
    return binary


@on_all_architectures
@pytest.mark.parametrize("result", ["float16", "float32"])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_an_accumulator_moves_by_16_bytes(dtype, result, arch):
    mm = devmath.Gemm(128, 128, 32, dtype)
    operand, other = array(dtype), array(result)
    binary = build(kernels.add_product(mm), (operand, operand, other, other), arch)
    bytes_a_thread = mm.m * mm.n // mm.threads * other.dtype.bitwidth // 8
    # Along rows at least; along columns as well where lanes hold neighbours of a column.
    assert binary.count("STG.E.128") >= bytes_a_thread // 16
    assert binary.count("LDG.E.128") >= bytes_a_thread // 16
    if mm.plan_on(arch).variant != "fma" or result == "float16":
        assert binary.count("SHFL.BFLY") > 0


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(
    ("mm", "store"),
    [
        (devmath.Gemm(64, 64, 32, "float32"), "STS.128"),
        (devmath.Gemm(64, 64, 32, "float32", c_order="col"), "STS"),
        (devmath.Gemm(64, 64, 32, "float16"), "STS.64"),
        (devmath.Gemm(64, 64, 32, "complex128", threads=256), "STS.128"),
    ],
    ids=str,
)
def test_an_accumulator_moves_through_a_tile_by_pieces(mm, store, arch):
    matrix = array(mm.c_dtype)
    binary = build(kernels.through_tile(mm), (matrix, matrix), arch)
    stores = {name: n for name, n in binary.opcodes.items() if name.startswith("STS")}
    assert set(stores) == {store}
    assert binary.count(store.replace("STS", "LDS")) >= stores[store]
