"""Launches: streams, graphs, both kinds of shared memory, arrays of other packages, warnings, very large arrays."""

import warnings

import numpy as np
import pytest
from numba import cuda
from numba.core.errors import NumbaError
from numba.cuda.cudadrv import driver

import devmath
from tests import kernels, oracle
from tests.gpu.device_arrays import Output

pytestmark = pytest.mark.gpu

BOUND = oracle.GEMM_BOUND["float32"]


@pytest.fixture
def dynamic_memory(monkeypatch):
    """Have tiles in dynamic shared memory, as below compute capability 9.0."""
    monkeypatch.setattr("devmath.frontends.numba_cuda.kernel.static_is_unlimited", lambda _: False)


def import_package(name):
    """Import a package that may be missing; what it warns of as it loads is its own affair."""
    with warnings.catch_warnings(action="ignore"):
        return pytest.importorskip(name)


def multiply(mm, rng):
    a, b = oracle.operands(rng, mm)
    c = Output((mm.m, mm.n), mm.c_dtype)
    kernels.gemm_accumulator(mm)[1, mm.block_dim](cuda.to_device(a), cuda.to_device(b), c.device)
    assert oracle.relative_error(c.fetch(), oracle.product(a, b)) < BOUND


def test_more_than_48_kb(rng):
    multiply(devmath.Gemm(128, 128, 64, "float32"), rng)


@pytest.mark.usefixtures("dynamic_memory")
@pytest.mark.parametrize("k", [16, 64])
def test_tiles_in_dynamic_memory(k, rng):
    multiply(devmath.Gemm(128, 128, k, "float32"), rng)


@pytest.mark.usefixtures("dynamic_memory")
@pytest.mark.parametrize("make", [kernels.fft_registers, kernels.fft_tile])
def test_transforms_in_dynamic_memory(make, rng):
    fft = devmath.FFT(4096)
    x = oracle.normal(rng, (5, 4096), fft.dtype)
    y = Output(x.shape, fft.dtype)
    make(fft)[5, fft.block_dim](cuda.to_device(x), y.device)
    assert oracle.relative_error(y.fetch(), oracle.transform(x)) < oracle.fft_bound(4096, fft.dtype)


@pytest.mark.parametrize("placement", ["static", "dynamic"])
def test_dynamic_memory_of_the_users_own_lies_apart(placement, rng, request):
    if placement == "dynamic":
        request.getfixturevalue("dynamic_memory")
    mm = devmath.Gemm(32, 32, 32, "float32")
    threads = mm.threads

    @cuda.jit
    def kernel(a, b, c, seen):
        own = cuda.shared.array(0, np.float32)
        for i in range(cuda.threadIdx.x, seen.size, threads):
            own[i] = i
        sa, sb = devmath.shared(mm.a), devmath.shared(mm.b)
        devmath.load(a, sa)
        devmath.load(b, sb)
        devmath.wait()
        acc = devmath.accumulator(mm)
        devmath.gemm(mm, sa, sb, acc)
        devmath.store(acc, c)
        for i in range(cuda.threadIdx.x, seen.size, threads):
            seen[i] = own[i]

    a, b = oracle.operands(rng, mm)
    c, seen = Output((32, 32), np.float32), cuda.to_device(np.full(500, np.nan, np.float32))
    kernel[1, mm.block_dim, 0, seen.nbytes](cuda.to_device(a), cuda.to_device(b), c.device, seen)
    assert oracle.relative_error(c.fetch(), oracle.product(a, b)) < BOUND
    assert np.array_equal(seen.copy_to_host(), np.arange(500))


def test_streams_run_side_by_side(rng):
    fft = devmath.FFT(1024)
    kernel = kernels.fft_registers(fft)
    x = oracle.normal(rng, (4, 64, 1024), fft.dtype)
    outputs = []
    for rows in x:
        stream = cuda.stream()
        source, target = cuda.to_device(rows, stream), cuda.device_array_like(rows, stream)
        kernel[fft.grid(64), fft.block_dim, stream](source, target)
        outputs.append(target)
    cuda.synchronize()
    got = np.stack([target.copy_to_host() for target in outputs])
    assert oracle.relative_error(got, oracle.transform(x)) < oracle.fft_bound(1024, fft.dtype)


@pytest.mark.parametrize("make", [kernels.gemm_tile, kernels.gemm_accumulator])
def test_a_graph_replays_a_kernel_on_new_data(make, rng):
    cupy = import_package("cupy")
    mm = devmath.Gemm(64, 64, 64, "float16")
    kernel = make(mm)
    (a, b), (new_a, new_b) = oracle.operands(rng, mm), oracle.operands(rng, mm)
    da, db, c = cuda.to_device(a), cuda.to_device(b), Output((64, 64), np.float32)
    scalars = (np.float32(1), np.float32(0)) if make is kernels.gemm_tile else ()
    arguments = [*scalars[:1], da, db, *scalars[1:], c.device]
    kernel[1, mm.block_dim](*arguments)  # loads the module: no capture may do that
    cuda.synchronize()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        kernel[1, mm.block_dim, cuda.external_stream(stream.ptr)](*arguments)
        graph = stream.end_capture()
    da.copy_to_device(new_a)
    db.copy_to_device(new_b)
    graph.launch(stream)
    stream.synchronize()
    assert oracle.relative_error(c.fetch(), oracle.product(new_a, new_b)) < BOUND


@pytest.mark.parametrize("package", ["cupy", "torch"])
def test_arrays_of_other_packages(package, rng):
    module = import_package(package)
    mm = devmath.Gemm(33, 47, 19, "float32")
    a, b = oracle.operands(rng, mm)
    to_device = module.asarray if package == "cupy" else lambda x: module.from_numpy(x).cuda()
    c = to_device(np.full((33, 47), np.nan, np.float32))
    kernels.gemm_accumulator(mm)[1, mm.block_dim](to_device(a), to_device(b), c)
    cuda.synchronize()
    got = module.asnumpy(c) if package == "cupy" else c.cpu().numpy()
    assert oracle.relative_error(got, oracle.product(a, b)) < BOUND


def test_local_memory_is_warned_of(rng):
    fft = devmath.FFT(256)
    x = oracle.normal(rng, (4, 256), fft.dtype)
    y, out = Output(x.shape, fft.dtype), cuda.to_device(np.full(fft.threads, -1))
    with pytest.warns(devmath.PerformanceWarning, match=r"keeps \d+ bytes a thread in local memory"):
        kernels.fft_with_local_memory(fft)[1, fft.block_dim](3, cuda.to_device(x), y.device, out)
    assert oracle.relative_error(y.fetch()[: fft.ffts_per_block], oracle.transform(x)[: fft.ffts_per_block]) < 1e-5
    assert np.array_equal(out.copy_to_host(), (np.arange(fft.threads) - 3) % 256)


def test_an_array_of_three_dimensions_is_refused_before_anything_runs():
    fft = devmath.FFT(128)
    x = cuda.to_device(np.zeros((1, 1, 128), np.complex64))
    with pytest.raises(NumbaError, match="source must be a 1-D or 2-D array of complex64, got a 3-D"):
        kernels.fft_registers(fft)[1, fft.block_dim](x, x)


@cuda.jit
def _count_nonzero(x, first, last, count):
    """Count what is not zero in rows first .. last - 1."""
    for row in range(first + cuda.grid(1), last, cuda.gridsize(1)):
        for i in range(x.shape[1]):
            if x[row, i] != 0:
                cuda.atomic.add(count, 0, 1)


def test_more_than_2_to_the_31_elements(rng):
    rows, ends = 2**27 + 3, 1000
    if cuda.current_context().get_memory_info().free < 40 * 2**30:
        pytest.skip("needs a GPU with 40 GiB free")
    fft = devmath.FFT(16)
    kernel = kernels.fft_registers(fft)
    x = cuda.device_array((rows, 16), np.complex64)
    driver.device_memset(x, 0, x.nbytes)
    head, tail = (oracle.normal(rng, (ends, 16), np.complex64) for _ in range(2))
    x[:ends].copy_to_device(head)
    x[rows - ends :].copy_to_device(tail)
    kernel[fft.grid(rows), fft.block_dim](x, x)
    bound = oracle.fft_bound(16, fft.dtype)
    assert oracle.relative_error(x[:ends].copy_to_host(), oracle.transform(head)) < bound
    assert oracle.relative_error(x[rows - ends :].copy_to_host(), oracle.transform(tail)) < bound
    count = cuda.to_device(np.zeros(1, np.int64))
    _count_nonzero[4096, 256](x, ends, rows - ends, count)
    assert count.copy_to_host()[0] == 0
