"""Products at the edges: any array shape and strides, poison, extremes of the formats, blocks that do not fit."""

import numpy as np
import pytest
from numba import cuda

import devmath
from tests import kernels, oracle
from tests.gpu.device_arrays import Output, Twin

pytestmark = pytest.mark.gpu

SHAPES = {  # of (m, n, k), beside a tile of 40 x 24 x 16
    "as the tile": (40, 24, 16),
    "one less": (39, 23, 15),
    "larger": (45, 27, 21),
    "one element": (1, 1, 1),
    "no rows": (0, 24, 16),
    "no columns": (40, 0, 16),
    "no depth": (40, 24, 0),
}


@pytest.fixture(scope="module", params=["float32", "float16", "complex128"])
def tiled(request):
    """Return a descriptor and its kernel, compiled once for all shapes."""
    mm = devmath.Gemm(40, 24, 16, request.param)
    return mm, kernels.gemm_tile(mm)


def expected(a, b, c, alpha, beta, mm):
    """What `gemm_tile` leaves in c: only the corner that the tile covers changes."""
    rows, cols, depth = min(mm.m, c.shape[0]), min(mm.n, c.shape[1]), min(mm.k, a.shape[1])
    want = c.astype(oracle.product(a, b).dtype)
    corner = want[:rows, :cols]
    corner[...] = alpha * oracle.product(a[:rows, :depth], b[:depth, :cols]) + beta * corner
    return want


@pytest.mark.parametrize("name", SHAPES)
def test_arrays_of_any_size(tiled, name, rng):
    mm, kernel = tiled
    m, n, k = SHAPES[name]
    a, b, c = (oracle.normal(rng, shape, mm.dtype) for shape in ((m, k), (k, n), (m, n)))
    c = c.astype(mm.c_dtype)
    out = Output((m, n), mm.c_dtype, fill=c)
    # Columns of wider arrays: one type of argument, so one compilation for all shapes.
    wide_a, wide_b = (np.pad(x, ((0, 0), (0, 8))) for x in (a, b))
    twin_a, twin_b = Twin(wide_a), Twin(wide_b)
    scalar = mm.accumulator_dtype.type
    views = twin_a.view(wide_a[:, :k]), twin_b.view(wide_b[:, :n])
    kernel[1, mm.block_dim](scalar(0.5), *views, scalar(-2.0), out.device)
    got, want = out.fetch(), expected(a, b, c, 0.5, -2.0, mm)
    assert got.shape == want.shape
    assert oracle.gemm_error(got, want) < oracle.GEMM_BOUND[mm.c_dtype.name]


VIEWS = {
    "every second row, every third column": lambda x, rows, cols: x[: 2 * rows : 2, : 3 * cols : 3],
    "reversed": lambda x, rows, cols: x[rows - 1 :: -1, cols - 1 :: -1],
    "transposed": lambda x, rows, cols: x[:cols, :rows].T,
    "one element beside alignment": lambda x, rows, cols: x[1 : rows + 1, 1 : cols + 1],
    "one row for all": lambda x, rows, cols: np.broadcast_to(x[3, :cols], (rows, cols)),
    "one column for all": lambda x, rows, cols: np.broadcast_to(x[:rows, 3:4], (rows, cols)),
}


@pytest.mark.parametrize("view", VIEWS)
def test_operands_of_any_strides(tiled, view, rng):
    mm, kernel = tiled
    whole = [oracle.normal(rng, (130, 131), mm.dtype) for _ in range(2)]
    twins = [Twin(x) for x in whole]
    a, b = VIEWS[view](whole[0], mm.m, mm.k), VIEWS[view](whole[1], mm.k, mm.n)
    out = Output((mm.m, mm.n), mm.c_dtype)
    scalar = mm.accumulator_dtype.type
    kernel[1, mm.block_dim](scalar(1.0), twins[0].view(a), twins[1].view(b), scalar(0.0), out.device)
    assert oracle.relative_error(out.fetch(), oracle.product(a, b)) < oracle.GEMM_BOUND[mm.c_dtype.name]


@pytest.mark.parametrize("make", [kernels.gemm_tile, kernels.gemm_accumulator])
@pytest.mark.parametrize("view", [name for name in VIEWS if "for all" not in name])
def test_results_of_any_strides(view, make, rng):
    mm = devmath.Gemm(33, 47, 19, "float32")
    a, b = oracle.operands(rng, mm)
    whole = np.full((130, 145), 7, np.float32)
    twin, c = Twin(whole), VIEWS[view](whole, mm.m, mm.n)
    scalars = {kernels.gemm_tile: (np.float32(1), np.float32(0)), kernels.gemm_accumulator: ()}[make]
    arguments = [*scalars[:1], cuda.to_device(a), cuda.to_device(b), *scalars[1:], twin.view(c)]
    make(mm)[1, mm.block_dim](*arguments)
    got = twin.fetch()
    c[...] = VIEWS[view](got, mm.m, mm.n)  # nothing beside the view may differ
    assert np.array_equal(got, whole)
    assert oracle.relative_error(c, oracle.product(a, b)) < 1e-5


@pytest.mark.parametrize("m", [64, 50])
@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64"])
def test_beta_zero_reads_nothing_and_infinities_stay_in_their_row(dtype, m, rng):
    mm = devmath.Gemm(m, 64, 64, dtype)
    kernel = kernels.gemm_tile(mm)
    a, b = oracle.operands(rng, mm)
    scalar = mm.accumulator_dtype.type
    alpha = 1.5j if dtype == "complex64" else 1.5
    for poison in (np.nan, np.inf):
        for beta in (0.0, -0.0):
            c = Output((mm.m, mm.n), mm.c_dtype, fill=poison)
            kernel[1, mm.block_dim](scalar(alpha), cuda.to_device(a), cuda.to_device(b), scalar(beta), c.device)
            assert oracle.relative_error(c.fetch(), alpha * oracle.product(a, b)) < 1e-5
    a[0, :] = np.inf
    c = Output((mm.m, mm.n), mm.c_dtype)
    kernel[1, mm.block_dim](scalar(alpha), cuda.to_device(a), cuda.to_device(b), scalar(0.0), c.device)
    got = c.fetch()
    assert not np.isfinite(got[0]).any()
    assert oracle.relative_error(got[1:], alpha * oracle.product(a[1:], b)) < 1e-5


@pytest.mark.parametrize(
    ("dtype", "depth", "a", "b", "want"),
    [("float32", 1, 2.0**-130, 2.0**10, 2.0**-120), ("float16", 16, 2.0**-24, 1.0, 2.0**-20)],
)
def test_subnormal_operands_count(dtype, depth, a, b, want):
    mm = devmath.Gemm(32, 32, depth, dtype)
    c = Output((32, 32), np.float32)
    operands = np.full((32, depth), a, dtype), np.full((depth, 32), b, dtype)
    kernels.gemm_accumulator(mm)[1, mm.block_dim](*map(cuda.to_device, operands), c.device)
    assert np.array_equal(c.fetch(), np.full((32, 32), want, np.float32))


@pytest.mark.parametrize("a_order", ["row", "col"])
@pytest.mark.parametrize("b_order", ["row", "col"])
def test_odd_leading_dimensions_and_depths_below_the_tile(a_order, b_order, rng):
    mm = devmath.Gemm(64, 64, 32, np.float16, a_order=a_order, b_order=b_order)
    kernel = kernels.gemm_grid(mm)
    letters = {"row": "C", "col": "F"}

    def run(a, b):
        (m, _), (_, n) = a.shape, b.shape
        c = Output((m, n), np.float32)
        grid = (-(-n // mm.n), -(-m // mm.m))
        kernel[grid, mm.block_dim](cuda.to_device(a), cuda.to_device(b), c.device)
        return c.fetch()

    for m, n, k in ((128, 1024, 3), (1024, 128, 1), (128, 1024, 133)):
        a = np.asarray(oracle.normal(rng, (m, k), np.float16), order=letters[a_order])
        b = np.asarray(oracle.normal(rng, (k, n), np.float16), order=letters[b_order])
        assert oracle.relative_error(run(a, b), oracle.product(a, b)) < 1e-5
    a = np.arange(6, dtype=np.float16).reshape((2, 3), order=letters[a_order])
    b = np.arange(12, dtype=np.float16).reshape((3, 4), order=letters[b_order])
    got = run(a, b)
    assert np.array_equal(got, oracle.product(a, b))
    if a_order == b_order:
        by_memory = {"row": [[20, 23, 26, 29], [56, 68, 80, 92]], "col": [[10, 28, 46, 64], [13, 40, 67, 94]]}
        assert got.tolist() == by_memory[a_order]


def test_a_block_that_does_not_fit_is_refused(rng):
    mm = devmath.Gemm(16, 104, 32, np.float16, threads=128)
    kernel = kernels.gemm_accumulator(mm)
    a, b = oracle.operands(rng, mm)
    c = Output((16, 104), np.float32, fill=-1)
    arguments = cuda.to_device(a), cuda.to_device(b), c.device
    for threads in (512, 96, 64):
        with pytest.raises(devmath.LaunchError, match=rf"must have 128 threads .*got {threads}"):
            kernel[1, threads](*arguments)
    assert (c.fetch() == -1).all()
    for block in (128, (32, 4), (8, 4, 4)):
        out = Output((16, 104), np.float32)
        kernel[1, block](*arguments[:2], out.device)
        assert oracle.relative_error(out.fetch(), oracle.product(a, b)) < 1e-5


@pytest.mark.parametrize("size", [8, 16, 24, 32, 33])
def test_tiles_inside_device_functions(size, rng):
    mm = devmath.Gemm(size, size, size, "float32", threads=32)
    x, y = (oracle.normal(rng, (10, 64, 64), np.float32) for _ in range(2))
    total, result = (cuda.to_device(np.full((10, size, size), np.nan, np.float32)) for _ in range(2))
    kernel = kernels.tiles_in_device_functions(mm)
    kernel[10, mm.block_dim](cuda.to_device(x), cuda.to_device(y), total, result)
    x, y = x[:, :size, :size], y[:, :size, :size]
    assert np.array_equal(total.copy_to_host(), (x + 2 * y).astype(np.float32))
    assert oracle.relative_error(result.copy_to_host(), y.astype(float) @ x.astype(float)) < 1e-5
