"""The tables of variants: every type has its row, every row its header, and plans say what the rows promise."""

from pathlib import Path

import pytest

import devmath
from devmath.dtypes import BY_NAME, lookup
from devmath.lto import variants
from tests.cases import FFT_CASES, GEMM_CASES

INCLUDE = Path(variants.__file__).with_name("include")


@pytest.mark.parametrize("dtype", BY_NAME)
def test_every_dtype_has_a_product(dtype):
    variant = variants.select(variants.GEMM_VARIANTS, dtype)
    assert dtype in variant.dtypes
    assert devmath.Gemm(32, 32, 32, dtype).plan.variant == variant.name


@pytest.mark.parametrize("dtype", [name for name, row in BY_NAME.items() if row.is_complex])
def test_every_complex_dtype_has_a_transform(dtype):
    assert dtype in variants.select(variants.FFT_VARIANTS, dtype).dtypes


def test_dtypes_of_a_table_are_all_of_its_rows():
    assert variants.dtypes(variants.GEMM_VARIANTS) == tuple(sorted(BY_NAME))
    assert variants.dtypes(variants.FFT_VARIANTS) == ("complex128", "complex64")


def test_the_first_row_that_fits_serves():
    first, second = (variants.Variant(name, frozenset({"float32"}), plan=dict) for name in ("first", "second"))
    other = variants.Variant("other", frozenset({"float64"}), plan=dict)
    assert variants.select((other, first, second), "float32") is first


@pytest.mark.parametrize("case", GEMM_CASES, ids=str)
def test_a_plan_keeps_what_was_asked(case):
    mm = case.descriptor()
    plan, element = mm.plan, lookup(mm.dtype)
    assert (INCLUDE / plan.header).is_file()
    assert (plan.m, plan.n, plan.k, plan.threads) == (case.m, case.n, case.k, mm.threads)
    assert plan.threads == dict(case.fields).get("threads", plan.threads)
    layouts = {"a": (case.m, case.k), "b": (case.k, case.n), "c": (case.m, case.n)}
    for name, shape in layouts.items():
        layout = getattr(plan, name)
        assert (layout.rows, layout.cols) == shape
        assert layout.order == dict(case.fields).get(f"{name}_order", "row")
    assert plan.a.dtype is plan.b.dtype is element
    assert (plan.fragment.rows, plan.fragment.cols) == (case.m, case.n)


@pytest.mark.parametrize("case", FFT_CASES, ids=str)
def test_a_transform_keeps_what_was_asked(case):
    fft = case.descriptor()
    for name, value in case.fields:
        assert getattr(fft, name) == value
        assert getattr(fft.plan, name) == value


def test_threads_that_are_too_few_for_the_registers_are_named():
    problem = devmath.Gemm(128, 128, 8, "float32", threads=64).plan.register_form_problem
    assert "at most 128 32-bit words with 64 threads, got 256" in problem
    assert "128 threads hold it" in problem
    assert devmath.Gemm(128, 128, 8, "float32", threads=128).plan.register_form_problem is None
