"""Products of the whole table of cases against NumPy in double precision."""

import numpy as np
import pytest

import devmath
from devmath.dtypes import lookup
from tests import kernels, oracle
from tests.cases import GEMM_CASES
from tests.gpu.device_arrays import Output, on_device

pytestmark = pytest.mark.gpu

IN_REGISTERS = [case for case in GEMM_CASES if case.descriptor().plan.register_form_problem is None]
REAL = [
    case
    for case in IN_REGISTERS
    if case.small and "complex" not in case.dtype and "int" not in case.dtype and not case.fields
]


def assert_close(mm, got, want):
    assert oracle.gemm_error(got, want) < oracle.gemm_bound(mm, got.dtype)


def small_integers(rng, shape, dtype):
    """Values 0, 1, 2: their products are exact in every type, so that each element must be."""
    return rng.integers(0, 3, shape).astype(dtype)


@pytest.mark.parametrize("case", GEMM_CASES, ids=str)
def test_tile(case, rng):
    mm = case.descriptor()
    kernel = kernels.gemm_tile(mm)
    a, b = oracle.operands(rng, mm)
    product = oracle.product(a, b, mm)
    da, db = on_device(a), on_device(b)
    alpha, beta = oracle.factors(mm)
    zero = mm.accumulator_dtype.type(0)
    c = oracle.normal(rng, (mm.m, mm.n), mm.c_dtype)

    poisoned = Output((mm.m, mm.n), mm.c_dtype)
    kernel[1, mm.block_dim](beta, da, db, zero, poisoned.device)
    assert_close(mm, poisoned.fetch(), beta * product)

    updated = Output((mm.m, mm.n), mm.c_dtype, fill=c)
    kernel[1, mm.block_dim](alpha, da, db, beta, updated.device)
    assert_close(mm, updated.fetch(), alpha * product + beta * c.astype(product.dtype))


@pytest.mark.parametrize("case", IN_REGISTERS, ids=str)
def test_accumulator(case, rng):
    mm = case.descriptor()
    kernel = kernels.gemm_accumulator(mm)

    def run(a, b):
        c = Output((mm.m, mm.n), mm.c_dtype)
        kernel[1, mm.block_dim](on_device(a), on_device(b), c.device)
        return c.fetch()

    for depth in (mm.k, 2 * mm.k + 3):  # the last step of the second is partial
        a, b = oracle.operands(rng, mm, depth)
        assert_close(mm, run(a, b), oracle.product(a, b, mm))
    a, b = small_integers(rng, (mm.m, mm.k), mm.dtype), small_integers(rng, (mm.k, mm.n), mm.b_dtype)
    assert np.array_equal(run(a, b), oracle.product(a, b).astype(mm.c_dtype))


@pytest.mark.parametrize("make", [kernels.gemm_bias, kernels.gemm_by_hand])
@pytest.mark.parametrize("case", REAL, ids=str)
def test_epilogue(case, make, rng):
    mm = case.descriptor()
    a, b = oracle.operands(rng, mm)
    bias = oracle.normal(rng, (mm.n,), mm.accumulator_dtype)
    c = Output((mm.m, mm.n), mm.c_dtype)
    make(mm)[1, mm.block_dim](on_device(a), on_device(b), on_device(bias), c.device)
    assert_close(mm, c.fetch(), np.maximum(oracle.product(a, b) + bias, 0))


@pytest.mark.parametrize("stored", ["float16", "bfloat16", "float32", "float64"])
def test_an_accumulator_is_stored_as_any_real_type(stored, rng):
    mm = devmath.Gemm(33, 47, 19, "float32")
    a, b = oracle.operands(rng, mm)
    c = Output((mm.m, mm.n), lookup(stored).numpy)
    kernels.gemm_accumulator(mm)[1, mm.block_dim](on_device(a), on_device(b), c.device)
    assert oracle.relative_error(c.fetch(), oracle.product(a, b)) < max(oracle.GEMM_BOUND[stored], 1e-5)


def test_whole_matrices_of_odd_sizes_are_exact(rng):
    mm = devmath.Gemm(128, 96, 32, "float16")
    m, n, k = 1752, 4720, 584
    a, b = small_integers(rng, (m, k), np.float16), small_integers(rng, (k, n), np.float16)
    c = Output((m, n), np.float32)
    grid = (-(-n // mm.n), -(-m // mm.m))
    kernels.gemm_grid(mm)[grid, mm.block_dim](on_device(a), on_device(b), c.device)
    assert np.array_equal(c.fetch(), a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize("width", [16, 32, 33, 34, 36, 48, 64, 80])
def test_two_products_chained_through_a_tile(width, rng):
    first = devmath.Gemm(64, width, 32, np.float16, threads=256)
    second = devmath.Gemm(64, 256, width, np.float16, threads=256)
    a = oracle.normal(rng, (640, 576), np.float16)
    b0, b1 = oracle.normal(rng, (576, width), np.float16), oracle.normal(rng, (width, 256), np.float16)
    e = Output((640, 256), np.float32)
    kernel = kernels.gemm_chained(first, second)
    kernel[10, first.block_dim](*(on_device(x) for x in (a, b0, b1)), e.device)
    middle = np.maximum(oracle.product(a, b0), 0).astype(np.float16)
    # The middle is rounded from float32 sums, which can fall on the other side of a tie than exact ones.
    assert oracle.relative_error(e.fetch(), oracle.product(middle, b1)) < 1e-4
