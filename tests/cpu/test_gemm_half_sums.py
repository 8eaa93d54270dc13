"""Products whose sums are float16: plans, and the header as plain C++ with emulated lanes."""

import numpy as np
import pytest
from gemm_cpu import Case, Program, operands, relative_error, wide

import devmath
from devmath.dtypes import BY_NAME

TILES, PLAIN = ("tile", "tile"), ("plain", "plain", "plain")
FLOAT8 = ("float8_e4m3fn", "float8_e5m2")

TILE_CASES = [
    Case(50, 24, 19, "float16", "rcr", sums="float16"),
    Case(33, 47, 40, "float16", "crc", 96, sums="float16"),
    Case(64, 64, 32, "float16", "ccr", 32, sums="float16"),  # several passes
    Case(20, 24, 16, "float16", forms=PLAIN, sums="float16"),
    *(Case(40, 24, 33, a, b_dtype=b, sums="float16") for a in FLOAT8 for b in FLOAT8),
    Case(40, 24, 32, "float8_e4m3fn", "crc", sums="float16", c_dtype="bfloat16"),
]
REGISTER_CASES = [
    Case(50, 37, 19, "float16", "crr", forms=TILES, sums="float16"),
    Case(64, 96, 20, "float16", "rcr", 32, forms=TILES, sums="float16"),
    Case(24, 40, 40, "float8_e5m2", forms=TILES, sums="float16"),
]
CASES = TILE_CASES + REGISTER_CASES


@pytest.fixture(scope="module", params=["float8", "halves"])
def program(request, tmp_path_factory):
    """Tensor cores that multiply float8, and older ones that multiply halves in its place."""
    flags = {"float8": (), "halves": ("-DDEVMATH_HAS_FLOAT8_MMA=0",)}[request.param]
    return Program(tmp_path_factory.mktemp(request.param), CASES, flags)


@pytest.mark.parametrize("case", TILE_CASES, ids=str)
def test_tile_form_agrees_with_numpy(program, case):
    rng = np.random.default_rng()
    a, b, c = operands(case, rng)
    alpha, beta = rng.standard_normal(2).astype(np.float16)
    got = program.tile_form(case, alpha, a, b, beta, c)
    expected = float(alpha) * (wide(a) @ wide(b)) + float(beta) * wide(c)
    assert relative_error(got, expected) < (2**-8 if case.c_dtype else 2**-10)


@pytest.mark.parametrize("case", REGISTER_CASES, ids=str)
def test_register_form_adds_to_the_accumulator(program, case):
    a, b, c = operands(case, np.random.default_rng())
    assert relative_error(program.register_form(case, a, b, c), wide(c) + wide(a) @ wide(b)) < 2**-10


@pytest.mark.parametrize("case", TILE_CASES, ids=str)
def test_small_integers_are_exact_and_what_is_too_large_is_infinite(program, case):
    rng = np.random.default_rng()
    a, b = rng.integers(0, 3, (case.m, case.k)), rng.integers(1, 3, (case.k, case.n))
    c = rng.integers(-2, 3, (case.m, case.n))
    got = program.tile_form(case, 1.0, a, b, 1.0, c)
    assert np.array_equal(got, (a @ b + c).astype(case.plan.c.dtype.numpy))
    a[3] = 256
    largest = 256 if case.dtype != "float16" else 1024
    got = program.tile_form(case, 1.0, a, np.full_like(b, largest), 0.0, c)
    assert np.isinf(got[3]).all()


@pytest.mark.parametrize("case", REGISTER_CASES, ids=str)
def test_a_descriptor_says_so(case):
    mm = devmath.Gemm(case.m, case.n, case.k, case.dtype, accumulator_dtype="float16")
    assert mm.accumulator_dtype == mm.c_dtype == np.float16
    assert "accumulator_dtype=float16" in repr(mm)
    assert mm != devmath.Gemm(case.m, case.n, case.k, case.dtype, c_dtype="float16")
    assert mm.plan.accumulator is BY_NAME["float16"]
    assert mm.plan_on("sm_90a").variant == "mma_sync"
