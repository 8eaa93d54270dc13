"""Accumulators as machine code: wide accesses, shuffles, nothing in local memory."""

from collections import Counter
from dataclasses import replace

import pytest
from numba import cuda

import devmath
from devmath.dtypes import lookup
from devmath.lto.arch import ARCHITECTURES
from devmath.lto.gemm_register_operand import lies_as_operand
from tests import accumulator_kernels as kernels
from tests.accumulator_refusals import REFUSED
from tests.compile.harness import TYPING_ERRORS, array, compile_kernel, link

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


@on_all_architectures
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_softmax_stays_in_registers(dtype, arch):
    mm = devmath.Gemm(64, 64, 32, dtype)
    matrix = array(mm.accumulator_dtype)
    binary = link(kernels.softmax_rows(mm), (matrix, matrix), arch)
    # A division calls a subroutine where numbers are subnormal.
    opcodes = Counter({name: n for name, n in binary.opcodes.items() if not name.startswith("RET")})
    replace(binary, opcodes=opcodes).assert_clean()
    assert binary.count("SHFL.BFLY") > 0
    if dtype != "float64":
        assert any(name.startswith("FMNMX") and "NAN" in name for name in binary.opcodes)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
def test_sums_of_rows_and_columns_stay_in_registers(dtype, arch):
    mm = devmath.Gemm(64, 64, 32, dtype)
    matrix, vector = array(mm.accumulator_dtype), array(mm.accumulator_dtype, 1)
    first, second = mm, devmath.Gemm(64, 32, 32, dtype, b_order="col", threads=mm.threads)
    build(kernels.vectors(first, second), (matrix, matrix, vector, matrix), arch)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_a_conversion_stays_in_registers(dtype):
    mm = devmath.Gemm(64, 64, 32, "float16")
    binary = build(
        kernels.converted(mm, lookup(dtype).numpy.type), (array("float32"), array(dtype), array("float32", 1)), "sm_90a"
    )
    assert binary.count("STG.E.128") > 0


def test_warps_that_share_no_row_need_no_barrier():
    mm = devmath.Gemm(64, 64, 32, "float16", threads=128)
    matrix = array("float32")
    assert mm.plan_on("sm_90a").fragment.warps_of_row == 1
    assert link(kernels.softmax_rows(mm), (matrix, matrix), "sm_90a").count("BAR") == 0


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    kernel, parts = REFUSED[name]
    with pytest.raises(TYPING_ERRORS) as caught:
        compile_kernel(cuda.jit(kernel), (), "sm_90a")
    assert [part for part in parts if part not in str(caught.value)] == []


def chained(first, second, arch):
    matrices = (array(first.dtype), array(first.b_dtype), array(second.b_dtype), array(second.accumulator_dtype))
    return build(kernels.chained(first, second), matrices, arch)


@pytest.mark.parametrize(
    ("first", "second", "arch", "multiply"),
    [
        (("float16", 64, 64, 64, 128), ("float16", 64, 96, 64, 128), "sm_90a", "HGMMA"),
        (("bfloat16", 128, 48, 64, 256), ("bfloat16", 128, 64, 48, 256), "sm_90a", "HGMMA"),
        (("float16", 128, 64, 64, 128), ("float16", 128, 64, 64, 128), "sm_90a", "HGMMA"),
        *((("float16", 32, 64, 32, 32), ("float16", 32, 64, 64, 32), arch, "HMMA") for arch in ARCHITECTURES),
        (("float64", 32, 16, 16, 32), ("float64", 32, 16, 16, 32), "sm_80", "DMMA"),
    ],
)
def test_an_accumulator_that_lies_as_an_operand_stays_in_registers(first, second, arch, multiply):
    inner, outer = (devmath.Gemm(*extents, dtype, threads=threads) for dtype, *extents, threads in (first, second))
    binary = chained(inner, outer, arch)
    assert lies_as_operand(inner.plan_on(arch).fragment, outer.plan_on(arch))
    assert binary.count("BAR") == 1  # behind the loads
    assert binary.count(multiply) > 0


@on_all_architectures
@pytest.mark.parametrize(("first", "second"), [("float16", "float16"), ("float32", "float16"), ("float16", "float32")])
def test_any_accumulator_can_be_an_operand(first, second, arch):
    inner, outer = devmath.Gemm(33, 80, 32, first, threads=128), devmath.Gemm(33, 64, 80, second, threads=128)
    assert not lies_as_operand(inner.plan_on(arch).fragment, outer.plan_on(arch))
    binary = chained(inner, outer, arch)
    # One behind the loads; each of two products waits for the last readers, and then for all writers.
    assert 3 <= binary.count("BAR") <= 5


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("mm", kernels.BATCHED, ids=repr)
def test_accumulators_of_a_batch_stay_in_registers_and_need_no_barrier(mm, arch):
    operand, result = array(mm.dtype, 3), array(mm.accumulator_dtype, 3)
    binary = build(kernels.batch(mm), (operand, operand, result, result), arch)
    assert binary.count("BAR") == 0
