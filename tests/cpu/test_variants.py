"""The tables of variants: every type has its row, every row its header, and plans say what the rows promise."""

from dataclasses import replace
from pathlib import Path

import pytest

import devmath
from devmath.dtypes import BY_NAME, lookup
from devmath.lto import variants
from tests.cases import FFT_CASES, GEMM_CASES
from tests.problems import problem

INCLUDE = Path(variants.__file__).with_name("include")


OPERAND_DTYPES = variants.dtypes(variants.GEMM_VARIANTS)


@pytest.mark.parametrize("dtype", OPERAND_DTYPES)
def test_every_dtype_has_a_product(dtype):
    variant = variants.select(problem(32, 32, 32, dtype))
    assert dtype in variant.dtypes
    assert devmath.Gemm(32, 32, 32, dtype).plan.variant == variant.name


@pytest.mark.parametrize("dtype", [name for name, row in BY_NAME.items() if row.is_complex])
def test_every_complex_dtype_has_a_transform(dtype):
    assert dtype in variants.transform_variant(dtype).dtypes


def test_dtypes_of_a_table_are_all_of_its_rows():
    assert tuple(sorted({*BY_NAME} - {"int32"})) == OPERAND_DTYPES
    assert variants.dtypes(variants.FFT_VARIANTS) == ("complex128", "complex64")


def test_the_first_row_that_serves_is_chosen(monkeypatch):
    names = ("unwilling", "first", "second")
    unwilling, first, second = (variants.Variant(name, "", frozenset({"float32"}), plan=dict) for name in names)
    unwilling = replace(unwilling, drawback=lambda _: "it is slow")
    other = variants.Variant("other", "", frozenset({"float64"}), plan=dict)
    monkeypatch.setattr(variants, "GEMM_VARIANTS", (other, unwilling, first, second))
    assert variants.select(problem(8, 8, 8)) is first
    assert variants.select(problem(8, 8, 8), forced="unwilling") is unwilling
    assert variants.explain(problem(8, 8, 8)).reason == "unwilling does not serve: it is slow"


EXPLAINED = [
    ((128, 128, 64, "float16"), {}, "sm_90a", "wgmma", "the fastest for float16"),
    ((128, 128, 64, "float16"), {}, "sm_80", "mma_sync", "wgmma does not serve: it runs on sm_90a, not on sm_80"),
    ((128, 128, 24, "float16"), {}, "sm_90a", "mma_sync", "k must be a multiple of 16, got 24"),
    ((16, 64, 64, "float16"), {"threads": 128}, "sm_90a", "mma_sync", "a tile below 64 x 16"),
    ((65, 64, 64, "float16"), {}, "sm_90a", "mma_sync", "only 51% of what it multiplies"),
    ((64, 64, 64, "float16"), {"threads": 96}, "sm_90a", "mma_sync", "a multiple of 128 up to 512, got 96"),
    ((64, 64, 48, "int8"), {}, "sm_90a", "mma_sync", "k must be a multiple of 32, got 48"),
    ((128, 128, 32, "float32"), {"math": "tf32"}, "sm_90a", "wgmma_tf32", "the fastest for float32"),
    ((128, 128, 32, "float32"), {"math": "3xtf32"}, "sm_89", "mma_tf32", "it runs on sm_90a, not on sm_89"),
    ((256, 64, 32, "float32"), {"math": "3xtf32", "threads": 512}, "sm_90a", "mma_tf32", "up to 384, got 512"),
    ((192, 168, 32, "float32"), {"math": "3xtf32", "threads": 384}, "sm_90a", "mma_tf32", "of 24 columns only"),
    ((64, 64, 64, "float64"), {}, "sm_86", "fma", "mma_f64 does not serve: its units are no faster on sm_86"),
    ((3, 3, 3, "float64"), {}, "sm_90a", "fma", "would multiply 37.9 times the numbers there are"),
    ((64, 64, 64, "float64"), {"threads": 512}, "sm_90a", "fma", "512 threads have too few registers"),
    ((16, 64, 64, "float16"), {"force_variant": "wgmma"}, "sm_90a", "wgmma", "force_variant names it"),
    ((64, 64, 64, "float64"), {"force_variant": "fma"}, "sm_90a", "fma", "force_variant names it"),
]


@pytest.mark.parametrize(("size", "fields", "arch", "name", "reason"), EXPLAINED)
def test_a_descriptor_says_which_variant_serves_and_why(size, fields, arch, name, reason):
    mm = devmath.Gemm(*size, **fields)
    choice = mm.variant(arch)
    assert choice.name == mm.plan_on(arch).variant == name
    assert reason in choice.reason
    assert str(choice) == f"{name} ({choice.unit}): {choice.reason}"


def test_an_unknown_target_is_refused():
    with pytest.raises(ValueError, match=r"arch must be sm_80 or newer, such as .*, got sm_70"):
        devmath.Gemm(8, 8, 8).variant("sm_70")


def test_a_forced_variant_that_a_target_lacks_is_refused():
    mm = devmath.Gemm(64, 64, 64, "float16", force_variant="wgmma")
    with pytest.raises(ValueError, match="got 'wgmma': it runs on sm_90a, not on sm_80"):
        mm.plan_on("sm_80")


@pytest.mark.parametrize("case", GEMM_CASES, ids=str)
def test_a_plan_keeps_what_was_asked(case):
    mm = case.descriptor()
    plan, element = mm.plan, lookup(mm.dtype)
    assert (INCLUDE / plan.header).is_file()
    assert (plan.problem.m, plan.problem.n, plan.problem.k, plan.threads) == (case.m, case.n, case.k, mm.threads)
    assert plan.threads == dict(case.fields).get("threads", plan.threads)
    layouts = {"a": (case.m, case.k), "b": (case.k, case.n), "c": (case.m, case.n)}
    for name, shape in layouts.items():
        layout = getattr(plan, name)
        assert (layout.rows, layout.cols) == shape
        plain = plan.plain(name)
        assert (plain.dtype, plain.rows, plain.cols) == (layout.dtype, *shape)
        assert plain.order == dict(case.fields).get(f"{name}_order", "row")
        if layout.dtype.itemsize > 1:
            assert layout.order == plain.order
    assert (plan.a.dtype, plan.b.dtype) == (element, lookup(mm.b_dtype))
    assert (plan.fragment.rows, plan.fragment.cols) == (case.m, case.n)


@pytest.mark.parametrize("case", FFT_CASES, ids=str)
def test_a_transform_keeps_what_was_asked(case):
    fft = case.descriptor()
    for name, value in case.fields:
        assert getattr(fft, name) == value
        assert getattr(fft.plan, name) == value


def test_threads_that_are_too_few_for_the_registers_are_named():
    sentence = devmath.Gemm(128, 128, 8, "float32", threads=64).plan.register_form_problem
    assert "at most 128 32-bit words with 64 threads, got 256" in sentence
    assert "128 threads hold it" in sentence
    assert devmath.Gemm(128, 128, 8, "float32", threads=128).plan.register_form_problem is None
