"""Whole matrix products on the GPU: every edge, any grid, both ways of loading; a wait that hangs ends the kernel."""

import os

import numpy as np
import pytest
from numba import cuda

import devmath
from devmath.frontends.numba_cuda.matrices import MappedType
from tests import mainloop
from tests.gpu.device_arrays import Output, Twin, on_device
from tests.oracle import gemm_error, normal, unset

pytestmark = pytest.mark.gpu

MM = mainloop.FAST[1]
LAUNCHES = int(os.environ.get("DEVMATH_STRESS_LAUNCHES", "300"))


@pytest.fixture(autouse=True)
def _bounded_waits(monkeypatch):
    monkeypatch.setenv("DEVMATH_WAIT_LIMIT_NS", "2000000000")


class Operand:
    """A or B on the device; rows of memory start at multiples of 16 bytes, or right after each other.

    Parameters
    ----------
    host : numpy.ndarray
        In the order of the descriptor.
    order : {"row", "col"}
    is_padded : bool
    """

    def __init__(self, host: np.ndarray, order: str, is_padded: bool = True):
        lines = host if order == "row" else host.T
        surplus = 16 + -lines.shape[1] % 16 if is_padded else 0
        memory = np.pad(lines, ((0, 1), (0, surplus)), constant_values=77)  # finite, and wrong wherever it is read
        self._twin = Twin(memory)
        part = memory[: lines.shape[0], : lines.shape[1]]
        self.device = self._twin.view(part if order == "row" else part.T)


def operands(rng, mm, m, n, k, is_padded=True):
    """Random A and B: on the host, and on the device."""
    a, b = mainloop.matrices(rng, mm, m, n, k)
    return a, b, Operand(a, mm.a_order, is_padded), Operand(b, mm.b_order, is_padded)


def run_linear(rng, mm, kernel, shape, dtype, is_padded=True, grid=None):
    """Launch `kernel`, which is `mainloop.linear(mm)`, and check every element."""
    m, n, k = shape
    a, b, on_a, on_b = operands(rng, mm, m, n, k, is_padded)
    bias, c = normal(rng, (n,), mm.accumulator_dtype), Output((m, n), dtype, fill=unset((m, n), dtype))
    arguments = mm.operands(on_a.device, on_b.device, c.device)
    kernel[grid or mm.grid(m, n), mm.block_dim](*arguments, cuda.to_device(bias))
    error = gemm_error(c.fetch(), mainloop.expected(a, b, mm, bias))
    assert error < mainloop.bound(mm, dtype), (shape, error)
    return [isinstance(x._numba_type_, MappedType) for x in arguments]


@pytest.mark.parametrize("mm", mainloop.FAST, ids=str)
def test_matrices_of_any_size(mm, rng, gpu):
    kernel = mainloop.linear(mm)
    for shape in mainloop.shapes(mm):
        mapped = run_linear(rng, mm, kernel, shape, mainloop.result_dtype(mm))
        assert mapped[:2] == [gpu.compute_capability == (9, 0)] * 2


@pytest.mark.parametrize("mm", mainloop.FAST[:5], ids=str)
def test_lines_that_tma_cannot_take(mm, rng):
    kernel = mainloop.linear(mm)
    for shape in mainloop.shapes(mm):
        run_linear(rng, mm, kernel, shape, np.float32, is_padded=False)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_results_of_other_types(dtype, rng):
    dtype = devmath.dtypes.lookup(dtype).numpy
    kernel = mainloop.linear(MM)
    for shape in mainloop.shapes(MM):
        run_linear(rng, MM, kernel, shape, dtype)


@pytest.mark.parametrize("mm", mainloop.PORTABLE, ids=str)
def test_other_types(mm, rng):
    kernel = mainloop.plain(mm)
    for m, n, k in mainloop.shapes(mm):
        for is_padded in (False, True):
            a, b, on_a, on_b = operands(rng, mm, m, n, k, is_padded)
            c = Output((m, n), mm.accumulator_dtype, fill=unset((m, n), mm.accumulator_dtype))
            kernel[mm.grid(m, n), mm.block_dim](*mm.operands(on_a.device, on_b.device, c.device))
            assert gemm_error(c.fetch(), mainloop.expected(a, b, mm)) < mainloop.bound(mm, c.device.dtype), (m, n, k)


@pytest.mark.parametrize("blocks", [1, 3, 1000])
@pytest.mark.parametrize("mm", [MM, mainloop.FAST[8], mainloop.PORTABLE[0]], ids=str)
def test_any_grid(mm, blocks, rng):
    run_linear(rng, mm, mainloop.linear(mm), (20 * mm.m + 1, 3 * mm.n - 8, 3 * mm.k), np.float32, grid=blocks)


@pytest.mark.parametrize("mm", [MM, mainloop.PORTABLE[0]], ids=str)
def test_tiles_that_are_left_out(mm, rng):
    m, n, k = 5 * mm.m - 1, 3 * mm.n + 1, 5 * mm.k
    a, b, on_a, on_b = operands(rng, mm, m, n, k)
    c, visits = Output((m, n), np.float32, fill=-1), cuda.to_device(np.zeros((m, n), np.int32))
    mainloop.upper_triangle(mm)[2, mm.block_dim](*mm.operands(on_a.device, on_b.device, c.device), visits)
    rows, cols = np.ogrid[:m, :n]
    is_upper = rows // mm.m * mm.m < cols // mm.n * mm.n + mm.n
    assert (visits.copy_to_host() == 1).all()
    assert gemm_error(c.fetch(), np.where(is_upper, mainloop.expected(a, b, mm), -1)) < 1e-5


@pytest.mark.parametrize("mm", [MM, mainloop.FAST[8], mainloop.PORTABLE[0]], ids=str)
def test_an_epilog_that_reduces_rows(mm, rng):
    m, n, k = 3 * mm.m, 2 * mm.n, 2 * mm.k + 8
    a, b, on_a, on_b = operands(rng, mm, m, n, k)
    c = Output((m, n), np.float32)
    mainloop.centred(mm)[2, mm.block_dim](*mm.operands(on_a.device, on_b.device, c.device))
    assert gemm_error(c.fetch(), mainloop.centred_rows(mainloop.expected(a, b, mm), mm)) < 1e-5


def test_plain_arrays_as_arguments(rng):
    a, b, on_a, on_b = operands(rng, MM, 300, 500, 200)
    c = Output((300, 500), np.float32)
    mainloop.plain(MM)[5, MM.block_dim](on_a.device, on_b.device, c.device)
    assert gemm_error(c.fetch(), mainloop.expected(a, b, MM)) < 1e-5


def test_random_shapes_one_after_another(rng):
    """One kernel, operands that stay, C of any part of them: nothing may hang, and no element be wrong."""
    mm, size = mainloop.FAST[8], 700
    kernel = mainloop.plain(mm)
    a, b, on_a, on_b = operands(rng, mm, size, size, size)
    for _ in range(LAUNCHES):
        m, n, k = (int(x) for x in rng.integers(1, (size, size, size), endpoint=True))
        c = Output((m, n), np.float32)
        views = on_a.device[:m, :k], on_b.device[:k, :n]
        kernel[int(rng.integers(1, 40)), mm.block_dim](*mm.operands(*views, c.device))
        assert gemm_error(c.fetch(), mainloop.expected(a[:m, :k], b[:k, :n], mm)) < 1e-5, (m, n, k)


def test_not_a_number_stays_in_its_row(rng):
    a, _, _, on_b = operands(rng, MM, 300, 520, 200)
    a[5, 7] = np.nan
    c = Output((300, 520), np.float16)
    on_a = Operand(a, MM.a_order)
    mainloop.plain(MM)[MM.grid(300, 520), MM.block_dim](*MM.operands(on_a.device, on_b.device, c.device))
    got = c.fetch()
    assert np.isnan(got[5]).all()
    assert not np.isnan(np.delete(got, 5, axis=0)).any()


def test_a_block_that_does_not_fit_is_refused():
    a, b, c = (cuda.device_array(shape, np.float16) for shape in ((64, 64), (64, 64), (64, 64)))
    mm = mainloop.FAST[0]
    with pytest.raises(devmath.LaunchError, match=rf"the block must have {mm.block_dim[0]} threads"):
        mainloop.plain(mm)[1, 64](*mm.operands(a, b, c))


def test_torch_tensors_and_graphs(rng):
    torch = pytest.importorskip("torch")
    mm = mainloop.FAST[4]  # bfloat16, B by columns
    m, n, k = 256, 512, 320
    a, weight = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for shape in ((m, k), (n, k)))
    c = torch.full((m, n), float("nan"), device="cuda", dtype=torch.bfloat16)
    kernel = mainloop.plain(mm)
    stream = torch.cuda.Stream()

    def launch():
        on_stream = cuda.external_stream(torch.cuda.current_stream().cuda_stream)  # never the default one here
        kernel[mm.grid(m, n), mm.block_dim, on_stream](*mm.operands(a, weight.T, c))

    with torch.cuda.stream(stream):
        launch()
    torch.cuda.synchronize()
    want = a.double() @ weight.double().T
    assert ((c.double() - want).norm() / want.norm()).item() < 2.0**-8
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launch()
    c.fill_(float("nan"))
    graph.replay()
    torch.cuda.synchronize()
    assert ((c.double() - want).norm() / want.norm()).item() < 2.0**-8


def test_cupy_arrays(rng):
    cupy = pytest.importorskip("cupy")
    a, b = mainloop.matrices(rng, MM, 200, 300, 128)
    c = cupy.full((200, 300), cupy.nan, cupy.float32)
    operands = MM.operands(cupy.asarray(a), cupy.asarray(b, order="F"), c)
    mainloop.plain(MM)[MM.grid(200, 300), MM.block_dim](*operands)
    assert gemm_error(c.get(), mainloop.expected(a, b, MM)) < 1e-5


def test_a_repeated_call_returns_the_same_maps():
    a, b, c = (on_device(np.zeros(shape, np.float16)) for shape in ((64, 64), (64, 256), (64, 256)))
    mm = mainloop.FAST[0]
    first, second = mm.operands(a, b, c), mm.operands(a, b, c)
    assert all(x.placement is y.placement for x, y in zip(first, second, strict=True))
