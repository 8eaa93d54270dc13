"""The text of GEMM units: the signature that callers rely on, and what it names."""

import re

import pytest

from devmath.lto import gemm_source
from devmath.lto.variants import select
from tests.problems import problem

TILES = ("tile", "tile", "tile")


def plan(dtype):
    wanted = problem(32, 32, 16, dtype, "rcr")
    return select(wanted).plan(wanted)


def declaration(source):
    return next(line for line in source.splitlines() if line.startswith('extern "C"'))


@pytest.mark.parametrize(
    ("dtype", "alpha", "beta"),
    [
        ("float16", "float alpha", "float beta"),
        ("float32", "float alpha", "float beta"),
        ("float64", "double alpha", "double beta"),
        ("complex64", "float alpha_re, float alpha_im", "float beta_re, float beta_im"),
        ("complex128", "double alpha_re, double alpha_im", "double beta_re, double beta_im"),
    ],
)
def test_signature_of_the_tile_form(dtype, alpha, beta):
    assert declaration(gemm_source.tile_form(plan(dtype), TILES, "name")) == (
        f'extern "C" __device__ void name({alpha}, const void* a, int lda, const void* b, int ldb, '
        f"{beta}, void* c, int ldc) {{"
    )


def test_signature_of_the_register_form():
    assert declaration(gemm_source.register_form(plan("float32"), TILES[:2], "name")) == (
        'extern "C" __device__ void name(const void* a, int lda, const void* b, int ldb, void* rmem_acc) {'
    )


@pytest.mark.parametrize("plain", range(3))
def test_each_operand_has_its_own_form(plain):
    forms = ["tile"] * 3
    forms[plain] = "plain"
    source = gemm_source.tile_form(plan("float32"), tuple(forms), "name")
    kinds = re.findall(r"  using [ABC] = devmath::(\w+)<", source)
    expected = ["TileLayout"] * 3
    expected[plain] = "PlainLayout"
    assert kinds == expected


def test_the_unit_includes_the_header_of_its_variant():
    gemm = plan("float16")
    assert gemm_source.tile_form(gemm, TILES, "name").startswith(f"#include <{gemm.header}>\n")
