"""Wrong calls in kernels: the message names the operand, what it must be, and what it is."""

import numpy as np
import pytest
from numba import cuda
from numba.cuda import types

import devmath
from tests.compile.harness import TYPING_ERRORS, array, compile_kernel

MM = devmath.Gemm(32, 16, 8, "float32")
TRANSPOSED = devmath.Gemm(32, 16, 8, "float32", a_order="col")
COMPLEX = devmath.Gemm(32, 16, 8, "complex64", threads=MM.threads)
INTEGERS = devmath.Gemm(32, 16, 8, "int8")
FLOAT8 = devmath.Gemm(32, 16, 8, "float8_e4m3fn")
TOO_LARGE = devmath.Gemm(128, 128, 8, "float32", threads=64)
FFT = devmath.FFT(64)
OTHER_FFT = devmath.FFT(64, ffts_per_block=1)

MATRIX, VECTOR, CUBE, DOUBLES = array("float32"), array("float32", 1), array("float32", 3), array("float64")
SPECTRUM = array("complex64")
READ_ONLY = types.Array(types.float32, 2, "A", readonly=True)

REFUSED = []


def refused(*parts, args=()):
    """Collect a kernel that must not compile, and what its error must say."""

    def collect(function):
        REFUSED.append(pytest.param(function, args, parts, id=function.__name__))
        return function

    return collect


@cuda.jit(device=True)
def negative(x, row, col):
    return -x


@cuda.jit(device=True)
def halve(x, row, col):
    return x / 2


@cuda.jit(device=True)
def imaginary(x, row, col):
    return x * 1j


@refused("devmath.load takes positional arguments only, got target", args=(MATRIX,))
def keyword_argument(a):
    devmath.load(a, target=devmath.shared(MM.a))


@refused("devmath.shared takes no keyword but stages, got buffers")
def another_keyword_argument():
    devmath.shared(MM.a, buffers=2)


@refused("devmath.shared: multiple values for argument 'stages'")
def an_argument_given_twice():
    devmath.shared(MM.a, 2, stages=2)


@refused("devmath.wait: too many positional arguments")
def too_many_arguments():
    devmath.wait(1, 2)


@refused("devmath.shared: stages must be an integer >= 1, known while compiling, got 0")
def no_stages():
    devmath.shared(MM.a, stages=0)


@refused("devmath.shared: stages must be an integer >= 1, known while compiling, got int64", args=(types.int64,))
def stages_of_run_time(n):
    devmath.shared(MM.a, n)


@refused("devmath.wait: pending must be an integer >= 0, known while compiling, got -1")
def fewer_loads_than_none():
    devmath.wait(pending=-1)


@refused("devmath.wait: pending must be an integer >= 0, known while compiling, got float64")
def half_a_load():
    devmath.wait(0.5)


@refused("devmath.wait: pending must be an integer >= 0, known while compiling, got int64", args=(types.int64,))
def loads_of_run_time(n):
    devmath.wait(pending=n)


@refused(
    "devmath.load: target must be a tile, an accumulator or registers, got 2 stages of a tile (32, 8) of",
    args=(MATRIX,),
)
def load_into_a_stack(a):
    devmath.load(a, devmath.shared(MM.a, stages=2))


@refused("devmath.gemm: a must be a tile (32, 8) of float32", "got 2 stages of a tile (32, 8) of float32")
def gemm_of_a_stack():
    devmath.gemm(MM, devmath.shared(MM.a, stages=2), devmath.shared(MM.b), devmath.accumulator(MM))


@refused("stages of a tile take one integer, stack[s], got stack[float64]")
def fractional_stage():
    devmath.shared(MM.a, stages=2)[0.5]


@refused("devmath.shared: its first argument must be mm.a, mm.b or mm.c of a devmath.Gemm or a devmath.FFT, got Gemm(")
def shared_of_a_whole_product():
    devmath.shared(MM)


@refused("devmath.accumulator: its first argument must be a devmath.Gemm, got FFT(")
def accumulator_of_a_transform():
    devmath.accumulator(FFT)


@refused("devmath.accumulator: the accumulator of a thread must be at most 128 32-bit words with 64 threads, got 256")
def accumulator_too_large():
    devmath.accumulator(TOO_LARGE)


@refused("devmath.gemm: the accumulator of a thread must be at most 128 32-bit words", "128 threads hold it")
def gemm_with_too_large_an_accumulator():
    acc = cuda.local.array(256, np.float32)
    devmath.gemm(TOO_LARGE, devmath.shared(TOO_LARGE.a), devmath.shared(TOO_LARGE.b), acc)


@refused("devmath.registers: its first argument must be a devmath.FFT, got Gemm(")
def registers_of_a_product():
    devmath.registers(MM)


@refused("devmath.transform_index: its first argument must be a devmath.FFT, got int", args=(types.int64,))
def transform_index_of_a_number(n):
    devmath.transform_index(n)


@refused("devmath.gemm: its first argument must be a devmath.Gemm, got FFT(")
def gemm_of_a_transform():
    devmath.gemm(FFT, devmath.shared(MM.a), devmath.shared(MM.b), devmath.accumulator(MM))


@refused("devmath.gemm takes (desc, alpha, a, b, beta, c) or (desc, a, b, acc), got 3 arguments")
def gemm_with_too_few_operands():
    devmath.gemm(MM, devmath.shared(MM.a), devmath.shared(MM.b))


@refused("devmath.gemm: alpha must be a number that converts to float32, got complex128")
def gemm_with_a_complex_alpha():
    devmath.gemm(MM, 1.0j, devmath.shared(MM.a), devmath.shared(MM.b), 0.0, devmath.shared(MM.c))


@refused("devmath.gemm: beta must be a number that converts to float32, got a 2-D array of float32", args=(MATRIX,))
def gemm_with_an_array_for_beta(c):
    devmath.gemm(MM, 1.0, devmath.shared(MM.a), devmath.shared(MM.b), c, devmath.shared(MM.c))


@refused("devmath.gemm: a must be a tile (32, 8) of float32, order 'row'", "got a tile (8, 16) of float32")
def gemm_with_swapped_operands():
    devmath.gemm(MM, devmath.shared(MM.b), devmath.shared(MM.a), devmath.accumulator(MM))


@refused("devmath.gemm: a must be a tile (32, 8) of float32, order 'col' with the layout", "order 'row'")
def gemm_with_a_tile_of_the_other_order():
    devmath.gemm(TRANSPOSED, devmath.shared(MM.a), devmath.shared(MM.b), devmath.accumulator(TRANSPOSED))


@refused("devmath.gemm: b must be a tile (8, 16) of float32", "cuda.shared.array", "got a 3-D array of float32")
def gemm_with_an_array_of_three_dimensions():
    b = cuda.shared.array((1, 8, 16), np.float32)
    devmath.gemm(MM, devmath.shared(MM.a), b, devmath.accumulator(MM))


@refused("devmath.gemm: b must be a tile (8, 16) of float32", "got a 2-D array of float64")
def gemm_with_an_array_of_another_dtype():
    b = cuda.shared.array((8, 16), np.float64)
    devmath.gemm(MM, devmath.shared(MM.a), b, devmath.accumulator(MM))


@refused("devmath.gemm: c must be a tile (32, 16) of float32", "got the accumulator of Gemm(")
def gemm_with_an_accumulator_for_c():
    devmath.gemm(MM, 1.0, devmath.shared(MM.a), devmath.shared(MM.b), 0.0, devmath.accumulator(MM))


@refused("devmath.gemm: acc must be devmath.accumulator(Gemm(", "got the accumulator of Gemm(", "complex64")
def gemm_with_the_accumulator_of_another_product():
    devmath.gemm(MM, devmath.shared(MM.a), devmath.shared(MM.b), devmath.accumulator(COMPLEX))


@refused("devmath.gemm: acc must be", "or a 1-D cuda.local.array of float32, got a 1-D array of float64")
def gemm_with_registers_of_another_dtype():
    acc = cuda.local.array(16, np.float64)
    devmath.gemm(MM, devmath.shared(MM.a), devmath.shared(MM.b), acc)


@refused("devmath.fft: its first argument must be a devmath.FFT, got Gemm(")
def fft_of_a_product():
    devmath.fft(MM, devmath.registers(FFT))


@refused("devmath.fft: data must be devmath.registers(FFT(", "ffts_per_block=1")
def fft_of_the_registers_of_another_transform():
    devmath.fft(FFT, devmath.registers(OTHER_FFT))


@refused("devmath.fft: data must be a tile (", "64) of complex64, order 'row', got a tile (32, 8) of complex64")
def fft_of_a_tile_of_another_shape():
    devmath.fft(FFT, devmath.shared(COMPLEX.a))


@refused("devmath.fft: data must be registers or a tile of FFT(", "array of complex64, got a 1-D array of complex128")
def fft_of_an_array_of_another_dtype():
    devmath.fft(FFT, cuda.local.array(FFT.elements_per_thread, np.complex128))


@refused("devmath.load: target must be a tile, an accumulator or registers, got a 2-D", args=(MATRIX, MATRIX))
def load_into_an_array(a, b):
    devmath.load(a, b)


@refused("devmath.load: source must be a 2-D array of float16 or ", "got a 2-D array of complex64", args=(SPECTRUM,))
def load_complex_numbers_into_an_accumulator(a):
    devmath.load(a, devmath.accumulator(MM))


@refused("devmath.load: source must be an array, or a tile (32, 16) of ", "got a tile (32, 8) of float32")
def load_a_tile_into_an_accumulator_of_another_shape():
    devmath.load(devmath.shared(MM.a), devmath.accumulator(MM))


@refused("devmath.load: source must be a 2-D array of float32, got a 1-D array of float32", args=(VECTOR,))
def load_a_tile_from_a_vector(a):
    devmath.load(a, devmath.shared(MM.a))


@refused("devmath.load: source must be a 2-D array of float32, got a 2-D array of float64", args=(DOUBLES,))
def load_another_dtype(a):
    devmath.load(a, devmath.shared(MM.a))


@refused("devmath.load: source must be a 1-D or 2-D array of complex64, got a 3-D", args=(array("complex64", 3),))
def load_registers_from_three_dimensions(x):
    devmath.load(x, devmath.registers(FFT), 0)


@refused("devmath.load: the registers of a transform take one more argument, the row", args=(SPECTRUM,))
def load_registers_without_a_row(x):
    devmath.load(x, devmath.registers(FFT))


@refused("devmath.load: the registers of a transform take one more argument, the row", args=(SPECTRUM,))
def load_registers_from_a_fractional_row(x):
    devmath.load(x, devmath.registers(FFT), 0.5)


@refused("devmath.load: source must be a 3-D array of float32, as an index follows, got a 2-D", args=(MATRIX,))
def load_a_tile_from_a_row(a):
    devmath.load(a, devmath.shared(MM.a), 0)


@refused("devmath.store: source must be a tile, an accumulator or registers, got a 2-D", args=(MATRIX, MATRIX))
def store_an_array(a, b):
    devmath.store(a, b)


@refused("devmath.store: target must be a 2-D array of", "got a 3-D array of float32", args=(CUBE,))
def store_to_three_dimensions(c):
    devmath.store(devmath.accumulator(MM), c)


@refused("devmath.store: target must be a 2-D array of complex64 or complex128, got a 2-D", args=(MATRIX,))
def store_complex_to_real(c):
    devmath.store(devmath.shared(COMPLEX.c), c)


@refused("devmath.store: target must be a 2-D array of", "that may be written, got a 2-D array", args=(READ_ONLY,))
def store_to_a_read_only_array(c):
    devmath.store(devmath.shared(MM.c), c)


@refused("devmath.store: target must be an array, or a tile (32, 16) of", "got a tile (32, 8) of float32")
def store_an_accumulator_to_a_tile_of_another_shape():
    devmath.store(devmath.accumulator(MM), devmath.shared(MM.a))


@refused("devmath.store: target must be an array, or a tile (32, 16) of", "got a tile (32, 16) of complex64")
def store_an_accumulator_to_a_complex_tile():
    devmath.store(devmath.accumulator(MM), devmath.shared(COMPLEX.c))


@refused("devmath.store: target must be a 1-D or 2-D array of complex64, got a 2-D", args=(array("complex128"),))
def store_registers_to_another_dtype(y):
    devmath.store(devmath.registers(FFT), y, 0)


@refused("devmath.apply: acc must be a devmath.accumulator, or a row or column vector, got the registers of FFT(")
def apply_to_registers():
    devmath.apply(negative, devmath.registers(FFT))


@refused("devmath.apply: function must be a @cuda.jit(device=True) function, got int", args=(types.int64,))
def apply_a_number(n):
    devmath.apply(n, devmath.accumulator(MM))


@refused("devmath.apply: the result of function must be a number that converts to float32, got complex128")
def apply_a_function_of_complex_values():
    devmath.apply(imaginary, devmath.accumulator(MM))


@refused("devmath.gemm: alpha must be an integer that converts to int32, got float64")
def fraction_as_a_factor_of_integers():
    a, b, c = devmath.shared(INTEGERS.a), devmath.shared(INTEGERS.b), devmath.shared(INTEGERS.c)
    devmath.gemm(INTEGERS, 1.0, a, b, 0, c)


@refused("the accumulator of Gemm(", "holds int32, got a value of type float64")
def fraction_among_integers():
    devmath.accumulator(INTEGERS)[0] = 0.5


@refused("devmath.apply: the result of function must be an integer that converts to int32, got float64")
def apply_that_leaves_the_integers():
    devmath.apply(halve, devmath.accumulator(INTEGERS))


@refused("devmath.store: target must be a 2-D array of float16 or ", " or int32 or ", args=(array("int8"),))
def store_wide_integers_to_narrow_ones(c):
    devmath.store(devmath.accumulator(INTEGERS), c)


@refused(
    "devmath.load: source must be a 2-D array of float8_e4m3fn, got a 2-D array of float8_e5m2",
    args=(array("float8_e5m2"),),
)
def load_the_other_float8(a):
    devmath.load(a, devmath.shared(FLOAT8.a))


@refused("a tile (32, 8) of float8_e4m3fn, order 'row' holds float8_e4m3fn, got a value of type complex128")
def complex_element_of_a_float8_tile():
    devmath.shared(FLOAT8.a)[0, 0] = 1.0j


@refused("a tile takes two integers, t[i, j], got t[int64]", args=(types.int64,))
def one_index_of_a_tile(i):
    devmath.shared(MM.a)[i] = 1.0


@refused("an accumulator or registers take one integer, acc[i], got acc[UniTuple(int64 x 2)]", args=(types.int64,))
def two_indices_of_an_accumulator(i):
    devmath.accumulator(MM)[i, i] = 1.0


@refused("a tile (32, 8) of float32, order 'row' holds float32, got a value of type complex128")
def complex_element_of_a_real_tile():
    devmath.shared(MM.a)[0, 0] = 1.0j


@refused("row(i) takes one integer, the number of a register")
def fractional_register():
    devmath.accumulator(MM).row(0.5)


@refused("index(i) is of the registers of a transform, got the accumulator of Gemm(", "use row(i) and col(i)")
def position_in_an_accumulator():
    devmath.accumulator(MM).index(0)


@pytest.mark.parametrize(("function", "arguments", "parts"), REFUSED)
def test_refused(function, arguments, parts):
    with pytest.raises(TYPING_ERRORS) as caught:
        compile_kernel(cuda.jit(function), arguments, "sm_90a")
    message = str(caught.value)
    assert [part for part in parts if part not in message] == []
