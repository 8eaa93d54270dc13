"""Products by wgmma: every way a tile can lie in shared memory, and every way a block can share the work."""

import itertools

import numpy as np
import pytest
from numba import cuda, types

import devmath
from tests import kernels, oracle
from tests.gpu.device_arrays import Output, on_device

pytestmark = pytest.mark.gpu

ORDERS = tuple(itertools.product(("row", "col"), repeat=2))
#: (m, n, k, threads): one panel of each swizzle, panels along n and along k, a last panel half used, padded lines,
#: passes, and one to four warpgroups along m and along n.
SHAPES = (
    (64, 64, 64, 128),
    (64, 64, 32, 128),
    (64, 64, 16, 128),
    (64, 16, 64, 128),
    (64, 128, 64, 128),
    (64, 64, 128, 128),
    (64, 64, 80, 128),
    (64, 104, 32, 128),
    (64, 128, 16, 256),
    (64, 256, 64, 256),
    (128, 128, 64, 256),
    (128, 256, 64, 256),
    (100, 72, 48, 128),
    (192, 160, 16, 384),
    (256, 128, 64, 512),
)


EACH_KIND = (
    {"dtype": "float16"},
    {"dtype": "int8"},
    *({"dtype": "float32", "math": math} for math in ("tf32", "3xtf32")),
)


@pytest.fixture(autouse=True)
def _needs_hopper(gpu):
    if tuple(gpu.compute_capability) != (9, 0):
        pytest.skip("wgmma is of compute capability 9.0 alone")


def descriptor(shape, orders, dtype, **fields):
    m, n, k, threads = shape
    mm = devmath.Gemm(m, n, k, dtype, a_order=orders[0], b_order=orders[1], threads=threads, **fields)
    assert mm.plan_on("sm_90a").variant.startswith("wgmma")
    return mm


def small_integers(rng, shape, dtype):
    return rng.integers(0 if dtype == np.uint8 else -3, 4, shape).astype(dtype)


@pytest.mark.parametrize("orders", ORDERS, ids="".join)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_both_forms_are_exact_on_integers(shape, orders, rng):
    assert_exact_on_integers(descriptor(shape, orders, "float16"), rng)


@pytest.mark.parametrize("math", ["tf32", "3xtf32"])
@pytest.mark.parametrize("orders", ORDERS, ids="".join)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_tf32_is_exact_on_integers(shape, orders, math, rng):
    m, n, k, threads = shape
    threads = 256 if threads == 512 else threads
    assert_exact_on_integers(descriptor((m, n, k // 2, threads), orders, "float32", math=math), rng)


@pytest.mark.parametrize("split", ["a", "b"])
@pytest.mark.parametrize("shape", [(128, 128, 32, 256), (64, 64, 32, 128), (128, 256, 24, 256), (100, 72, 64, 128)])
def test_three_terms_have_the_small_part_of_every_element(shape, split, rng):
    """One operand picks elements of the other, of 24 bits: what lacks its small part is wrong by up to 2^-10."""
    mm = descriptor(shape, ("row", "col"), "float32", math="3xtf32")
    if split == "a":
        a, b = oracle.normal(rng, (mm.m, mm.k), np.float32), np.eye(mm.k, mm.n, dtype=np.float32)
    else:
        a, b = np.eye(mm.m, mm.k, dtype=np.float32), oracle.normal(rng, (mm.k, mm.n), np.float32)
    c = Output((mm.m, mm.n), np.float32)
    kernels.gemm_accumulator(mm)[1, mm.block_dim](on_device(a), on_device(b), c.device)
    np.testing.assert_allclose(c.fetch(), a @ b, rtol=2.0**-19)


def test_three_terms_again_and_again(rng):
    """Calls follow each other with no barrier between, so that the fastest warpgroup splits B while others read it."""
    mm = descriptor((128, 128, 32, 256), ("row", "col"), "float32", math="3xtf32")
    a, b = oracle.operands(rng, mm)
    c = cuda.device_array((264, mm.m, mm.n), np.float32)
    kernels.gemm_repeated(mm)[264, mm.block_dim](on_device(a), on_device(b), c, 64)
    got = c.copy_to_host()
    assert (got == got[0]).all()
    assert oracle.relative_error(got[0], 64 * oracle.product(a, b)) < 1e-6


@pytest.mark.parametrize("dtype", ["int8", "uint8", "float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("orders", ORDERS, ids="".join)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_bytes_are_exact_on_integers(shape, orders, dtype, rng):
    m, n, k, threads = shape
    assert_exact_on_integers(descriptor((m, n, 2 * k, threads), orders, dtype), rng)


@pytest.mark.parametrize("types_of", [("int8", "uint8"), ("float8_e4m3fn", "float8_e5m2")], ids="-".join)
def test_bytes_of_two_types(types_of, rng):
    for a_dtype, b_dtype in (types_of, types_of[::-1]):
        assert_exact_on_integers(descriptor((128, 104, 96, 256), ("row", "col"), a_dtype, b_dtype=b_dtype), rng)


@pytest.mark.parametrize("depth", [128, 4096])
def test_sums_of_float8_keep_their_bound(depth, rng):
    """Each instruction, of 32 values of k, cuts 2^-13 of the largest number that it sums."""
    mm = descriptor((128, 128, 128, 256), ("row", "col"), "float8_e4m3fn")
    a, b = oracle.operands(rng, mm, depth)
    c = Output((mm.m, mm.n), np.float32)
    kernels.gemm_accumulator(mm)[1, mm.block_dim](on_device(a), on_device(b), c.device)
    magnitudes = oracle.product(np.abs(a.astype(np.float32)), np.abs(b.astype(np.float32)))
    assert (np.abs(c.fetch() - oracle.product(a, b)) <= (depth // 32) * 2.0**-13 * magnitudes).all()


def assert_exact_on_integers(mm, rng):
    a, b = small_integers(rng, (mm.m, 2 * mm.k), mm.dtype), small_integers(rng, (2 * mm.k, mm.n), mm.b_dtype)
    c = Output((mm.m, mm.n), mm.c_dtype)
    kernels.gemm_accumulator(mm)[1, mm.block_dim](on_device(a), on_device(b), c.device)
    assert np.array_equal(c.fetch(), oracle.product(a, b))
    a, b = a[:, : mm.k].copy(), b[: mm.k].copy()
    c = Output((mm.m, mm.n), mm.c_dtype)
    one, none = mm.accumulator_dtype.type(1), mm.accumulator_dtype.type(0)
    kernels.gemm_tile(mm)[1, mm.block_dim](one, on_device(a), on_device(b), none, c.device)
    assert np.array_equal(c.fetch(), oracle.product(a, b))


@pytest.mark.parametrize("orders", ORDERS, ids="".join)
def test_bfloat16(orders, rng):
    mm = descriptor((128, 128, 64, 256), orders, "bfloat16")
    a, b = oracle.operands(rng, mm)
    c = Output((mm.m, mm.n), np.float32)
    kernels.gemm_accumulator(mm)[1, mm.block_dim](on_device(a), on_device(b), c.device)
    assert oracle.relative_error(c.fetch(), oracle.product(a, b)) < oracle.GEMM_BOUND["float32"]


@pytest.mark.parametrize("orders", ORDERS, ids="".join)
@pytest.mark.parametrize("fields", EACH_KIND, ids=str)
def test_elements_written_one_by_one_are_seen(orders, fields, rng):
    mm = descriptor((64, 128, 128, 128), orders, **fields)
    m, n, k, threads = mm.m, mm.n, mm.k, mm.threads

    @cuda.jit
    def kernel(a, b, c):
        sa, sb = devmath.shared(mm.a), devmath.shared(mm.b)
        for e in range(cuda.threadIdx.x, m * k, threads):
            sa[e // k, e % k] = a[e // k, e % k]
        for e in range(cuda.threadIdx.x, k * n, threads):
            sb[e // n, e % n] = b[e // n, e % n]
        devmath.wait()
        acc = devmath.accumulator(mm)
        devmath.gemm(mm, sa, sb, acc)
        devmath.store(acc, c)

    a, b = small_integers(rng, (m, k), mm.dtype), small_integers(rng, (k, n), mm.dtype)
    c = Output((m, n), mm.c_dtype)
    kernel[1, mm.block_dim](on_device(a), on_device(b), c.device)
    assert np.array_equal(c.fetch(), oracle.product(a, b))


@pytest.mark.parametrize("fields", EACH_KIND, ids=str)
def test_a_plain_operand_takes_part(fields, rng):
    """In the order of the descriptor, here across k, whatever that of a tile is."""
    mm = descriptor((64, 64, 32, 128), ("col", "col"), **fields)
    m, k, threads, element = mm.m, mm.k, mm.threads, getattr(types, mm.dtype.name)

    @cuda.jit
    def kernel(a, b, c):
        plain, sb = cuda.shared.array((k, m), element), devmath.shared(mm.b)
        for e in range(cuda.threadIdx.x, m * k, threads):
            plain[e % k, e // k] = a[e // k, e % k]
        devmath.load(b, sb)
        devmath.wait()
        acc = devmath.accumulator(mm)
        devmath.gemm(mm, plain, sb, acc)
        devmath.store(acc, c)

    a, b = oracle.operands(rng, mm)
    c = Output((m, mm.n), mm.c_dtype)
    kernel[1, mm.block_dim](on_device(a), on_device(b), c.device)
    assert oracle.relative_error(c.fetch(), oracle.product(a, b, mm)) < oracle.GEMM_BOUND[mm.c_dtype.name]
