"""Wrong uses of the verbs on accumulators, and what both front ends say: the operand, what it must be, what it is."""

from collections.abc import Callable

import numpy as np
from numba import cuda

import devmath

MM = devmath.Gemm(32, 16, 8, "float32", threads=64)
WIDE = devmath.Gemm(64, 16, 8, "float32", threads=64)
HALF = devmath.Gemm(32, 8, 8, "float16", threads=64)
COMPLEX = devmath.Gemm(32, 16, 8, "complex64", threads=64)
FFT = devmath.FFT(64, ffts_per_block=8, elements_per_thread=8)

#: Kernels without arguments by name, each with the parts of the message that its error must have.
REFUSED: dict[str, tuple[Callable[[], None], tuple[str, ...]]] = {}


def refused(*parts: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def collect(kernel: Callable[[], None]) -> Callable[[], None]:
        REFUSED[kernel.__name__] = (kernel, parts)
        return kernel

    return collect


@cuda.jit(device=True)
def negative(x, place, other):
    return -x


@cuda.jit(device=True)
def imaginary(x, place):
    return x * 1j


@cuda.jit(device=True)
def plus(x, row, col, other):
    return x + other


@refused("devmath.row_max: acc must be a devmath.accumulator, got a tile (32, 8) of float32")
def reduction_of_a_tile():
    devmath.row_max(devmath.shared(MM.a))


@refused("devmath.col_sum: acc must be a devmath.accumulator, got the registers of FFT(")
def reduction_of_a_transform():
    devmath.col_sum(devmath.registers(FFT))


@refused("devmath.col_min: acc must be of a real dtype, complex numbers have no order, got the accumulator of Gemm(")
def least_of_complex_numbers():
    devmath.col_min(devmath.accumulator(COMPLEX))


@refused("devmath.convert: acc must be a devmath.accumulator, got the registers of FFT(")
def conversion_of_a_transform():
    devmath.convert(devmath.registers(FFT), np.complex128)


@refused("devmath.convert: dtype must be ", ", got class(complex64)")
def conversion_of_real_to_complex():
    devmath.convert(devmath.accumulator(MM), np.complex64)


@refused("devmath.convert: dtype must be ", ", got int64")
def conversion_to_a_number():
    devmath.convert(devmath.accumulator(MM), 16)


@refused("devmath.row_vector: its first argument must be a devmath.Gemm, got FFT(")
def vector_of_a_transform():
    devmath.row_vector(FFT, 0.0)


@refused("devmath.row_vector: values must be a number that converts to float32, or a row vector of that dtype with 32")
def complex_vector_of_a_real_product():
    devmath.row_vector(MM, 1j)


@refused("devmath.row_vector: values must be", "with 64 rows, got a row vector of float32 of Gemm(32, 16, 8")
def vector_of_other_rows():
    devmath.row_vector(WIDE, devmath.row_vector(MM, 0.0))


@refused("devmath.col_vector: values must be", "with 16 columns, got a row vector of float32 of Gemm(")
def column_vector_of_rows():
    devmath.col_vector(MM, devmath.row_vector(MM, 0.0))


@refused("devmath.apply: a vector must be of a product that deals out its rows as Gemm(64", "devmath.row_vector deals")
def function_of_a_vector_of_other_rows():
    devmath.apply(plus, devmath.accumulator(WIDE), devmath.row_vector(MM, 0.0))


@refused("devmath.apply: vectors must be of one axis, got a row vector of", " and a col vector of")
def function_of_both_axes():
    devmath.apply(negative, devmath.row_vector(MM, 0.0), devmath.col_vector(MM, 0.0))


@refused("devmath.apply: the result of function must be a number that converts to float32, got complex")
def function_of_a_vector_that_leaves_the_real_numbers():
    devmath.apply(imaginary, devmath.row_vector(MM, 0.0))


@refused("devmath.apply: function must be a @cuda.jit(device=True) function, got ")
def function_that_is_a_number():
    devmath.apply(3, devmath.row_vector(MM, 0.0))


@refused("a row vector of float32 of Gemm(", "holds float32, got a value of type complex128")
def complex_element_of_a_real_vector():
    devmath.row_vector(MM, 0.0)[0] = 1j


@refused("an accumulator or registers take one integer, acc[i], got acc[float64]")
def broken_register_of_a_vector():
    devmath.row_vector(MM, 0.0)[0.5] = 1.0


@refused("devmath.store: source must be a tile, an accumulator or registers, got a row vector of float32")
def store_of_a_vector():
    devmath.store(devmath.row_vector(MM, 0.0), devmath.shared(MM.c))


@refused("devmath.gemm: acc must be devmath.accumulator(Gemm(32, 16, 8", ", converted to float16")
def product_into_a_converted_accumulator():
    acc = devmath.convert(devmath.accumulator(MM), np.float16)
    devmath.gemm(MM, devmath.shared(MM.a), devmath.shared(MM.b), acc)


@refused("devmath.gemm: a must be a tile, or an accumulator of shape (32, 8) converted to float16, got the accumulator")
def operand_of_another_dtype():
    acc = devmath.accumulator(HALF)
    devmath.gemm(HALF, devmath.accumulator(HALF), devmath.shared(HALF.b), acc)


@refused("devmath.gemm: a must be a tile, or an accumulator of shape (32, 8) converted to float32, got the accumulator")
def operand_of_another_shape():
    devmath.gemm(MM, devmath.accumulator(MM), devmath.shared(MM.b), devmath.accumulator(MM))


@refused(
    "devmath.gemm: a must be a tile, or an accumulator of shape (32, 8) converted to float32, got the registers of"
)
def operand_of_a_transform():
    devmath.gemm(MM, devmath.registers(FFT), devmath.shared(MM.b), devmath.accumulator(MM))


@refused("devmath.gemm: a must be a tile (32, 8) of float32", "got the accumulator of Gemm(32, 8, 8, float16")
def operand_in_registers_of_a_product_in_tiles():
    devmath.gemm(MM, 1.0, devmath.accumulator(HALF), devmath.shared(MM.b), 0.0, devmath.shared(MM.c))


@refused("devmath.gemm: b must be a tile (8, 16) of float32", "got the accumulator of Gemm(32, 8, 8, float16")
def accumulator_as_second_operand():
    devmath.gemm(MM, devmath.shared(MM.a), devmath.accumulator(HALF), devmath.accumulator(MM))
