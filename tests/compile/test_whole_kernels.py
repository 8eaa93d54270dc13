"""What the verbs do to the kernel around them: launch bounds, shared memory, and the functions that it calls."""

import numpy as np
import pytest
from numba import cuda
from numba.cuda import types

import devmath
from devmath.errors import LaunchError
from devmath.frontends.numba_cuda.launch import check_launch
from devmath.lto.arch import ARCHITECTURES
from tests import kernels
from tests.compile.harness import TYPING_ERRORS, array, compile_kernel, link

REGISTERS = 65536  # 32-bit registers of a multiprocessor
COMPLEX_ROWS = (array("complex64"), array("complex64"))
REAL_PRODUCT = (array("float32"), array("float32"), array("float32"))


@pytest.mark.parametrize("fft", [devmath.FFT(4), devmath.FFT(256), devmath.FFT(4096)], ids=repr)
def test_a_transform_bounds_its_kernel(fft):
    binary = link(kernels.fft_registers(fft), COMPLEX_ROWS, "sm_90a")
    threads, blocks = binary.launch_bounds
    assert (threads, blocks) == fft.launch_bounds
    assert binary.registers * threads * blocks <= REGISTERS


@pytest.mark.parametrize("fft", [devmath.FFT(256), devmath.FFT(4096)], ids=repr)
def test_two_transforms_get_more_registers(fft):
    convolution = (array("complex64"), array("complex64", 1, "C"), array("complex64"))
    binary = link(kernels.convolve(fft), convolution, "sm_90a")
    threads, blocks = binary.launch_bounds
    assert threads == fft.threads
    assert 0 < blocks < fft.launch_bounds[1]
    assert binary.registers * threads * blocks <= REGISTERS


def test_a_product_bounds_its_kernel():
    mm = devmath.Gemm(64, 64, 32, "float32")
    assert link(kernels.gemm_accumulator(mm), REAL_PRODUCT, "sm_80").launch_bounds == (mm.threads, 1)


def test_the_fewest_blocks_of_several_descriptors_hold():
    fft = devmath.FFT(256)
    mm = devmath.Gemm(32, 32, 32, "complex64", threads=fft.threads)

    def kernel(x, y):
        devmath.fft(fft, devmath.registers(fft))
        tile = devmath.shared(mm.a)
        devmath.load(x, tile)
        devmath.wait()
        acc = devmath.accumulator(mm)
        devmath.gemm(mm, tile, devmath.shared(mm.b), acc)
        devmath.fft(fft, devmath.registers(fft))
        devmath.store(acc, y)

    assert fft.launch_bounds[1] > 1
    assert link(cuda.jit(kernel), COMPLEX_ROWS, "sm_90a").launch_bounds == (fft.threads, 1)


def test_launch_bounds_of_the_user_win():
    fft = devmath.FFT(4096)
    kernel = cuda.jit(launch_bounds=(512, 2))(kernels.fft_registers(fft).py_func)
    binary = link(kernel, COMPLEX_ROWS, "sm_90a")
    binary.assert_clean()
    assert binary.launch_bounds == (512, 2)
    assert binary.registers * 512 * 2 <= REGISTERS


def test_descriptors_of_different_threads_are_refused():
    wide, narrow = devmath.Gemm(32, 32, 32, threads=128), devmath.Gemm(32, 32, 32, threads=64)

    def kernel():
        devmath.accumulator(wide)
        devmath.accumulator(narrow)

    with pytest.raises(TYPING_ERRORS) as caught:
        compile_kernel(cuda.jit(kernel), (), "sm_90a")
    assert "must agree on the threads of a block, got 128 for Gemm(" in str(caught.value)
    assert "and 64 for Gemm(" in str(caught.value)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_tiles_beyond_48_kb(arch):
    mm = devmath.Gemm(128, 128, 64, "float32")
    size_bytes = mm.a.size_bytes + mm.b.size_bytes
    assert size_bytes > 48 * 1024
    binary = link(kernels.gemm_accumulator(mm), REAL_PRODUCT, arch)
    binary.assert_clean()
    if arch == "sm_80":
        assert binary.shared_bytes == 0
        assert size_bytes <= binary.dynamic_bytes <= size_bytes + 2 * 128
    else:
        assert binary.shared_bytes >= size_bytes
        assert binary.dynamic_bytes == 0


def test_tiles_beyond_the_architecture_are_refused():
    mm = devmath.Gemm(128, 128, 128, "float32")
    with pytest.raises(TYPING_ERRORS, match=r"must fit the 101376 bytes of shared memory that sm_86 has, got 1\d{5}"):
        compile_kernel(kernels.gemm_accumulator(mm), REAL_PRODUCT, "sm_86")


def test_a_launch_gets_its_dynamic_memory_behind_the_callers_own():
    mm = devmath.Gemm(32, 32, 32, "float32")
    compiled = compile_kernel(kernels.gemm_accumulator(mm), REAL_PRODUCT, "sm_80")
    tiles = compiled.library.devmath_requirements.dynamic_bytes
    assert tiles >= mm.a.size_bytes + mm.b.size_bytes
    assert check_launch(compiled, mm.block_dim, 0) == tiles
    assert check_launch(compiled, mm.block_dim, 1000) == 1024 + tiles
    assert check_launch(compiled, (mm.threads // 8, 4, 2), 0) == tiles
    with pytest.raises(LaunchError, match=rf"must have {mm.threads} threads .* got 512 from block \(512, 1, 1\)"):
        check_launch(compiled, (512, 1, 1), 0)


def test_a_kernel_without_verbs_is_left_alone():
    def kernel(x):
        x[cuda.grid(1)] = 1.0

    binary = link(cuda.jit(kernel), (array("float32", 1),), "sm_90a")
    assert ".maxntid" not in binary.ptx
    compiled = compile_kernel(cuda.jit(kernel), (array("float32", 1),), "sm_90a")
    assert check_launch(compiled, (77, 1, 1), 123) == 123


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_tiles_inside_device_functions(arch):
    mm = devmath.Gemm(24, 24, 24, "float32", threads=32)
    binary = link(kernels.tiles_in_device_functions(mm), (array("float32", 3),) * 4, arch)
    binary.assert_clean()
    # One tile a function, however often it is called; static, since a kernel cannot see what its callees need.
    assert mm.a.size_bytes + mm.b.size_bytes <= binary.shared_bytes < 2 * (mm.a.size_bytes + mm.b.size_bytes)
    assert binary.dynamic_bytes == 0


def test_device_functions_of_different_threads_are_refused_at_launch():
    inner = devmath.Gemm(32, 32, 32, threads=64)
    outer = devmath.Gemm(32, 32, 32, threads=128)

    @cuda.jit(device=True)
    def helper():
        return devmath.accumulator(inner)[0]

    def kernel(c):
        acc = devmath.accumulator(outer)
        acc[0] = helper()
        devmath.store(acc, c)

    compiled = compile_kernel(cuda.jit(kernel), (array("float32"),), "sm_90a")
    with pytest.raises(LaunchError, match=r"must agree on the threads of a block, got \d+ for Gemm"):
        check_launch(compiled, (128, 1, 1), 0)


def test_constants_of_descriptors_are_known_while_compiling():
    fft = devmath.FFT(64)
    mm = devmath.Gemm(32, 16, 8, "float32", threads=fft.threads)

    def kernel(out):
        tile = devmath.shared(mm.c)
        v = devmath.registers(fft)
        cuda.local.array(mm.m, np.float32)  # Numba takes nothing but a constant here
        out[0] = 1000003 * (mm.m + mm.n + mm.k + mm.threads + mm.block_dim[0] + mm.launch_bounds[1])
        out[1] = 1000033 * (mm.a.size_bytes + tile.shape[0] + mm.b.shape[1])
        out[2] = 1000037 * (fft.n + fft.threads_per_fft + fft.inverse.ffts_per_block + v.size)
        out[3] = 1000039 * fft.grid(5 * fft.ffts_per_block + 1) + fft.grid(0)

    ptx = link(cuda.jit(kernel), (types.Array(types.int64, 1, "C"),), "sm_90a").ptx
    wanted = (
        1000003 * (32 + 16 + 8 + 2 * mm.threads + 1),
        1000033 * (mm.a.size_bytes + 32 + 16),
        1000037 * (64 + fft.threads_per_fft + fft.ffts_per_block + fft.elements_per_thread),
        1000039 * 6 + 1,
    )
    assert [value for value in wanted if f" {value};" not in ptx] == []
