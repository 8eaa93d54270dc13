"""float32 on tensor cores: how far from float64, and what becomes of infinities and subnormals."""

import numpy as np
import pytest

import devmath
from tests import kernels, oracle
from tests.gpu.device_arrays import Output, on_device

pytestmark = pytest.mark.gpu


def run(mm, a, b):
    c = Output((mm.m, mm.n), np.float32)
    kernels.gemm_accumulator(mm)[1, mm.block_dim](on_device(a), on_device(b), c.device)
    return c.fetch()


@pytest.mark.parametrize("depth", [32, 64, 4096])
@pytest.mark.parametrize("variant", [None, "mma_tf32"])
@pytest.mark.parametrize("orders", [("row", "col"), ("row", "row"), ("col", "row")], ids="".join)
def test_three_terms_are_as_accurate_as_float32(orders, variant, depth, rng):
    fields = {"a_order": orders[0], "b_order": orders[1]}
    exact = devmath.Gemm(64, 64, 32, "float32", **fields)
    split = devmath.Gemm(64, 64, 32, "float32", math="3xtf32", force_variant=variant, **fields)
    a, b = oracle.operands(rng, exact, depth)
    want = oracle.product(a, b)
    assert oracle.relative_error(run(split, a, b), want) < 4 * oracle.relative_error(run(exact, a, b), want)


@pytest.mark.parametrize("orders", [("row", "col"), ("row", "row"), ("col", "row")], ids="".join)
def test_one_term_reads_the_leading_bits_of_its_operands(orders, rng):
    mm = devmath.Gemm(64, 48, 40, "float32", math="tf32", a_order=orders[0], b_order=orders[1])
    a, b = oracle.operands(rng, mm)
    error = oracle.relative_error(run(mm, a, b), oracle.product(a, b))
    assert 2.0**-13 < error < 2.0**-10
    assert oracle.relative_error(run(mm, a, b), oracle.product(a, b, mm)) < 1e-6


def test_numbers_that_fit_are_multiplied_exactly(rng):
    mm = devmath.Gemm(64, 64, 32, "float32", math="tf32")
    a, b = (rng.integers(-1023, 1024, (64, 32)).astype(np.float32), rng.integers(-7, 8, (32, 64)).astype(np.float32))
    assert np.array_equal(run(mm, a, b), oracle.product(a, b))


@pytest.mark.parametrize("math", ["tf32", "3xtf32"])
def test_an_infinity_stays_in_its_row(math, rng):
    mm = devmath.Gemm(64, 64, 32, "float32", math=math)
    a, b = oracle.operands(rng, mm)
    a[3, 5] = np.inf
    got = run(mm, a, b)
    assert np.array_equal(np.isinf(got), np.broadcast_to(np.arange(64)[:, None] == 3, got.shape))
    b[5] = 1.0  # its small part is zero
    with np.errstate(invalid="ignore"):
        b[7, 2] = -np.inf
        assert np.array_equal(np.isnan(run(mm, a, b)), np.isnan(a @ b))


def test_float64_is_exact_on_integers_of_any_depth(rng):
    for k in (8, 16, 19, 33):
        mm = devmath.Gemm(64, 64, k, "float64")
        a, b = rng.integers(-9, 10, (64, k)).astype(float), rng.integers(-9, 10, (k, 64)).astype(float)
        c = Output((64, 64), np.float64)
        kernels.gemm_accumulator(mm)[1, mm.block_dim](on_device(a), on_device(b), c.device)
        assert np.array_equal(c.fetch(), a @ b)
