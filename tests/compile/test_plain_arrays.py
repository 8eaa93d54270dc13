"""``cuda.shared.array`` and ``cuda.local.array`` as operands, and the arrays that are refused."""

import numpy as np
import pytest
from numba import cuda
from numba.cuda import types

import devmath
from tests import kernels
from tests.compile.harness import TYPING_ERRORS, array, compile_kernel, link, scalar

MM = devmath.Gemm(32, 16, 8, "float32")
BY_COLUMNS = devmath.Gemm(32, 16, 8, "float16", a_order="col", b_order="col", c_order="col")
FFT = devmath.FFT(64)
# Numba takes names for the extents of an array, but no expressions.
SIZE, FEWER = MM.plan.fragment.size, MM.plan.fragment.size - 1
OUT = (array("float32", 1, "C"),)
SPECTRUM = (array("complex64", 1, "C"),)
ROWS, ROWS_SIZE = FFT.ffts_per_block, FFT.ffts_per_block * 64
FEWER_ELEMENTS = FFT.elements_per_thread - 1

ACCEPTED = []
REFUSED = []


def accepted(args):
    """Collect a kernel that must link to clean code."""

    def collect(function):
        ACCEPTED.append(pytest.param(function, args, id=function.__name__))
        return function

    return collect


def refused(message, args=()):
    """Collect a kernel that must not compile, and the message it must give."""

    def collect(function):
        REFUSED.append(pytest.param(function, args, message, id=function.__name__))
        return function

    return collect


@accepted(OUT)
def two_dimensional_operands(out):
    a, b, c = (cuda.shared.array((32, 8), np.float32), cuda.shared.array((8, 16), np.float32),
               cuda.shared.array((32, 16), np.float32))  # fmt: skip
    rank = cuda.threadIdx.x
    a[rank, 0], b[0, rank % 16], c[rank, 0] = out[0], out[1], out[2]
    cuda.syncthreads()
    devmath.gemm(MM, 1.0, a, b, 2.0, c)
    cuda.syncthreads()
    out[rank] = c[rank, 1]


@accepted(OUT)
def dense_operands_of_one_dimension(out):
    a, b, c = (cuda.shared.array(32 * 8, np.float32), cuda.shared.array(8 * 16, np.float32),
               cuda.shared.array(32 * 16, np.float32))  # fmt: skip
    rank = cuda.threadIdx.x
    a[rank], b[rank], c[rank] = out[0], out[1], out[2]
    cuda.syncthreads()
    devmath.gemm(MM, 1.0, a, b, 2.0, c)
    cuda.syncthreads()
    out[rank] = c[rank + 32]


@accepted((array("float16", 1, "C"), array("float32", 1, "C")))
def wider_lines_than_needed(x, out):
    # By columns, memory holds the transposed shape; six more elements a line than the product asks for.
    a, b, c = (cuda.shared.array((8, 38), np.float16), cuda.shared.array((16, 14), np.float16),
               cuda.shared.array((16, 38), np.float32))  # fmt: skip
    rank = cuda.threadIdx.x
    a[0, rank], b[rank % 16, 0], c[0, rank] = x[0], x[1], out[2]
    cuda.syncthreads()
    devmath.gemm(BY_COLUMNS, 1.0, a, b, 2.0, c)
    cuda.syncthreads()
    out[rank] = c[1, rank]


@accepted(OUT)
def a_view_of_some_columns(out):
    buffer = cuda.shared.array((40, 20), np.float32)
    a, b, acc = buffer[1:33, 3:11], devmath.shared(MM.b), devmath.accumulator(MM)
    rank = cuda.threadIdx.x
    a[rank, 0], b[0, rank % 16] = out[0], out[1]
    devmath.wait()
    devmath.gemm(MM, a, b, acc)
    out[rank] = acc[0]


@accepted(OUT)
def a_view_of_every_other_line(out):
    buffer = cuda.shared.array((64, 8), np.float32)
    a, b, acc = buffer[::2], devmath.shared(MM.b), devmath.accumulator(MM)
    rank = cuda.threadIdx.x
    a[rank, 0], b[0, rank % 16] = out[0], out[1]
    devmath.wait()
    devmath.gemm(MM, a, b, acc)
    out[rank] = acc[0]


@accepted(OUT)
def registers_of_the_users_own(out):
    a, b = devmath.shared(MM.a), devmath.shared(MM.b)
    a[cuda.threadIdx.x, 0], b[0, cuda.threadIdx.x % 16] = out[0], out[1]
    devmath.wait()
    acc = cuda.local.array(SIZE, np.float32)
    for i in range(SIZE):
        acc[i] = 1.0
    devmath.gemm(MM, a, b, acc)
    for i in range(SIZE):
        out[i * 32 + cuda.threadIdx.x] = acc[i]


@accepted(SPECTRUM)
def transform_of_local_registers(x):
    v = cuda.local.array(FFT.elements_per_thread, np.complex64)
    for i in range(FFT.elements_per_thread):
        v[i] = x[cuda.threadIdx.x + i * FFT.threads_per_fft]
    devmath.fft(FFT, v)
    for i in range(FFT.elements_per_thread):
        x[cuda.threadIdx.x + i * FFT.threads_per_fft] = v[i]


@accepted(SPECTRUM)
def transform_of_a_shared_array(x):
    rows = cuda.shared.array((ROWS, 70), np.complex64)
    rows[0, cuda.threadIdx.x % 64] = x[cuda.threadIdx.x]
    cuda.syncthreads()
    devmath.fft(FFT, rows)
    cuda.syncthreads()
    x[cuda.threadIdx.x] = rows[0, cuda.threadIdx.x % 64]


@accepted(SPECTRUM)
def transform_of_a_dense_shared_array(x):
    rows = cuda.shared.array(ROWS_SIZE, np.complex64)
    rows[cuda.threadIdx.x] = x[cuda.threadIdx.x]
    cuda.syncthreads()
    devmath.fft(FFT, rows)
    cuda.syncthreads()
    x[cuda.threadIdx.x] = rows[cuda.threadIdx.x]


@refused("devmath.gemm: a must lie in shared memory, got an array in local memory")
def operand_in_local_memory():
    a = cuda.local.array((32, 8), np.float32)
    devmath.gemm(MM, a, devmath.shared(MM.b), devmath.accumulator(MM))


@refused("devmath.gemm: acc must lie in local memory, got an array in shared memory")
def accumulator_in_shared_memory():
    devmath.gemm(MM, devmath.shared(MM.a), devmath.shared(MM.b), cuda.shared.array(SIZE, np.float32))


@refused("devmath.gemm: b must have at least the extents (8, 16), got (8, 15)")
def operand_too_narrow():
    b = cuda.shared.array((8, 15), np.float32)
    devmath.gemm(MM, devmath.shared(MM.a), b, devmath.accumulator(MM))


@refused("a must have lines of consecutive elements: strides of at least 32, and of just 4 bytes, got (64, 8)")
def operand_of_every_other_column():
    a = cuda.shared.array((32, 16), np.float32)
    devmath.gemm(MM, a[:, ::2], devmath.shared(MM.b), devmath.accumulator(MM))


@refused("a must have lines of consecutive elements: strides of at least 32, and of just 4 bytes, got (-32, 4)")
def operand_upside_down():
    a = cuda.shared.array((32, 8), np.float32)
    devmath.gemm(MM, a[::-1], devmath.shared(MM.b), devmath.accumulator(MM))


@refused("devmath.gemm: a must be a tile (32, 8) of float32, order 'row', or a 1-D or 2-D C-ordered cuda.shared.array")
def operand_transposed():
    a = cuda.shared.array((8, 32), np.float32)
    devmath.gemm(MM, a.T, devmath.shared(MM.b), devmath.accumulator(MM))


@refused("devmath.gemm: a must have at least the extents (256,), got (255,)")
def dense_operand_too_short():
    a = cuda.shared.array(255, np.float32)
    devmath.gemm(MM, a, devmath.shared(MM.b), devmath.accumulator(MM))


@refused("devmath.gemm: acc must have at least the extents")
def too_few_registers():
    devmath.gemm(MM, devmath.shared(MM.a), devmath.shared(MM.b), cuda.local.array(FEWER, np.float32))


@refused("devmath.fft: data must have at least the extents")
def too_few_registers_for_a_transform():
    devmath.fft(FFT, cuda.local.array(FEWER_ELEMENTS, np.complex64))


@refused("devmath.fft: data must have at least the extents")
def rows_too_short_for_a_transform():
    devmath.fft(FFT, cuda.shared.array((ROWS, 63), np.complex64))


@refused("devmath.fft: data must lie in shared memory", (array("complex64", 2, "C"),))
def transform_of_a_global_array(x):
    devmath.fft(FFT, x)


@refused("devmath.gemm: b must lie in shared memory", (array("float32", 2, "C"),))
def operand_in_global_memory(b):
    devmath.gemm(MM, devmath.shared(MM.a), b, devmath.accumulator(MM))


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(("function", "arguments"), ACCEPTED)
def test_accepted(function, arguments, arch):
    link(cuda.jit(function), arguments, arch).assert_clean()


@pytest.mark.parametrize(("function", "arguments", "message"), REFUSED)
def test_refused(function, arguments, message):
    with pytest.raises(TYPING_ERRORS) as caught:
        compile_kernel(cuda.jit(function), arguments, "sm_90a")
    assert message in str(caught.value)


def test_extents_that_are_known_after_inlining_cost_nothing():
    @cuda.jit(device=True)
    def product(a, b, acc):
        devmath.gemm(MM, a, b, acc)

    def kernel(out):
        a, acc = cuda.shared.array((32, 8), np.float32), devmath.accumulator(MM)
        a[cuda.threadIdx.x, 0] = out[0]
        product(a, devmath.shared(MM.b), acc)
        out[cuda.threadIdx.x] = acc[0]

    link(cuda.jit(kernel), OUT, "sm_90a").assert_clean()


def test_extents_that_are_known_at_run_time_only_are_checked_there():
    def kernel(length, out):
        a, acc = cuda.shared.array(256, np.float32), devmath.accumulator(MM)
        a[cuda.threadIdx.x] = out[0]
        devmath.gemm(MM, a[:length], devmath.shared(MM.b), acc)
        out[cuda.threadIdx.x] = acc[0]

    binary = link(cuda.jit(kernel), (types.int64, *OUT), "sm_90a")
    assert "trap;" in binary.ptx
    assert binary.count("CALL.ABS") == 1, "vprintf says why"


def test_lines_that_are_known_at_run_time_only_are_checked_there():
    def kernel(step, out):
        a, acc = cuda.shared.array((32, 32), np.float32), devmath.accumulator(MM)
        a[cuda.threadIdx.x, 0] = out[0]
        devmath.gemm(MM, a[:, ::step], devmath.shared(MM.b), acc)
        out[cuda.threadIdx.x] = acc[0]

    binary = link(cuda.jit(kernel), (types.int64, *OUT), "sm_90a")
    assert "trap;" in binary.ptx
    assert binary.count("CALL.ABS") >= 1, "vprintf says why"


@pytest.mark.parametrize("view", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex128"])
def test_longer_lines_in_every_order(dtype, view):
    for order in ("row", "col"):
        mm = devmath.Gemm(33, 24, 16, dtype, a_order=order, b_order=order, c_order=order)
        number, operand, result = scalar(mm.accumulator_dtype), array(dtype), array(mm.c_dtype)
        link(kernels.gemm_plain(mm, view), (number, operand, operand, number, result), "sm_90a").assert_clean()
