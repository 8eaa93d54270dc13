"""Accesses of tiles that no barrier orders: reported with thread, element and both lines, or right to do."""

import threading

import numpy as np
import pytest
from numba import cuda

import devmath

MM = devmath.Gemm(8, 8, 8, threads=32)
FFT = devmath.FFT(64, ffts_per_block=4, elements_per_thread=8)
A = np.ones((8, 8), np.float32)
X = np.ones((4, 64), np.complex64)
STORED = np.zeros((8, 8), np.float32)


def launch(body):
    """Run ``body(rank, a, b, c)`` in every thread, with loaded tiles; return what it leaves in C."""
    result = np.full((8, 8), np.nan, np.float32)

    @cuda.jit
    def kernel(source, target):
        a, b, c = devmath.shared(MM.a), devmath.shared(MM.b), devmath.shared(MM.c)
        devmath.load(source, a)
        devmath.load(source, b)
        devmath.load(source, c)
        devmath.wait()
        body(cuda.threadIdx.x, a, b, c)
        devmath.wait()
        devmath.store(c, target)

    kernel[1, 32](A, result)
    return result


def load_then(use):
    def body(rank, a, b, c):
        devmath.load(A, a)
        use(rank, a, b, c)

    return body


def read_own_load(rank, a, b, c):
    return a[rank // 8, rank % 8]


def multiply(rank, a, b, c):
    devmath.gemm(MM, 1.0, a, b, 0.0, c)


def multiply_into_registers(rank, a, b, c):
    devmath.gemm(MM, a, b, devmath.accumulator(MM))


def store_tile(rank, a, b, c):
    devmath.store(a, STORED)


def load_again(rank, a, b, c):
    devmath.load(A, a)


def write_element(rank, a, b, c):
    if rank == 5:
        a[3, 4] = 1


def plain_barrier_then_read(rank, a, b, c):
    cuda.syncthreads()
    return a[0, 0]


LOADED = {
    "an element": (read_own_load, r"t\[i, j\] at .* by thread \d+ reads"),
    "a product": (multiply, "devmath.gemm at .* by the block reads"),
    "a product in registers": (multiply_into_registers, "devmath.gemm at .* by the block reads"),
    "a store": (store_tile, "devmath.store at .* by the block reads"),
    "another load": (load_again, "devmath.load at .* by the block writes"),
    "an assignment": (write_element, r"t\[i, j\] = x at .* by thread 5 writes"),
    "a barrier that is not wait": (plain_barrier_then_read, r"t\[i, j\] at .* by thread \d+ reads"),
}


@pytest.mark.parametrize("use", LOADED)
def test_load_is_not_there_before_wait(use):
    body, reader = LOADED[use]
    sentence = (
        reader + r" element \(\d, \d\) of a tile \(8, 8\) of float32, order 'row' \(made at test_races.py:\d+\),"
        r" which devmath.load at test_races.py:\d+ by the block wrote: devmath.wait\(\) must come between"
    )
    with pytest.raises(devmath.SimulationError, match=sentence):
        launch(load_then(body))


def neighbour_reads(rank, a, b, c):
    c[0, rank % 8] = rank
    return c[0, (rank + 1) % 8]


def all_write_one(rank, a, b, c):
    c[0, 0] = rank


def product_of_written(rank, a, b, c):
    write_element(rank, a, b, c)
    multiply(rank, a, b, c)


def result_read_by_any(rank, a, b, c):
    multiply(rank, a, b, c)
    return c[0, 0]


def result_stored(rank, a, b, c):
    multiply(rank, a, b, c)
    devmath.store(c, STORED)


def operand_loaded_again(rank, a, b, c):
    multiply(rank, a, b, c)
    devmath.load(A, b)


def operand_changed(rank, a, b, c):
    multiply_into_registers(rank, a, b, c)
    write_element(rank, a, b, c)


def operand_is_result(rank, a, b, c):
    devmath.gemm(MM, 1.0, a, b, 0.0, a)


def fragment_in_operand(rank, a, b, c):
    devmath.store(devmath.accumulator(MM), a)
    multiply(rank, a, b, c)


def in_turn(first, then):
    """A body that runs ``first(c)`` in thread 0 and, once that is done, ``then(c)`` in the others."""
    done = threading.Event()

    def body(rank, a, b, c):
        if rank == 0:
            first(c)
            done.set()
        else:
            done.wait()
            then(c)

    return body


def read_corner(c):
    return c[7, 7]


def read_and_write_corner(c):
    c[7, 7] += 1


def store_fragment(c):
    devmath.store(devmath.accumulator(MM), c)


UNORDERED = {
    "an element from another thread": (neighbour_reads, "(which t.* by thread .* wrote|may still read)"),
    "an element of all threads": (all_write_one, r"by thread \d+ writes element \(0, 0\) .* by thread \d+ wrote"),
    "a product of an assignment": (product_of_written, r"by the block reads element \(3, 4\) .* by thread 5 wrote"),
    "an element of a result": (result_read_by_any, r"by thread \d+ reads element \(0, 0\) .* devmath.gemm at .* wrote"),
    "a store of a result": (result_stored, r"devmath.store .* reads element .* devmath.gemm at .* by thread \d+ wrote"),
    "a load over an operand": (operand_loaded_again, "devmath.load .* writes .* devmath.gemm at .* may still read"),
    "an assignment to an operand": (operand_changed, "by thread 5 writes .* devmath.gemm at .* may still read"),
    "a result over an operand": (
        operand_is_result,
        "devmath.gemm .* writes .* devmath.gemm at .* may still read",
    ),
    "a product of a stored fragment": (
        fragment_in_operand,
        "devmath.gemm .* reads .* devmath.store at .* wrote",
    ),
    "an assignment to what two threads read": (
        in_turn(read_corner, read_and_write_corner),
        r"t\[i, j\] = x at .* writes element \(7, 7\) .* by the block may still read",
    ),
    "a fragment over what is read": (
        in_turn(read_corner, store_fragment),
        r"devmath.store .* writes element \(7, 7\) .* by thread 0 may still read",
    ),
}


@pytest.mark.parametrize("race", UNORDERED)
def test_accesses_without_a_barrier_between(race):
    body, sentence = UNORDERED[race]
    with pytest.raises(devmath.SimulationError, match=sentence):
        launch(body)


def test_transform_of_a_tile_before_wait():
    @cuda.jit
    def kernel(x):
        tile = devmath.shared(FFT)
        devmath.load(x, tile)
        devmath.fft(FFT, tile)

    with pytest.raises(devmath.SimulationError, match=r"devmath.fft .* reads element \(0, 0\) .* devmath.load at"):
        kernel[1, 32](X)


def plain_barrier_orders_elements(rank, a, b, c):
    if rank < 8:
        c[0, rank] = rank
    cuda.syncthreads()
    if rank < 8:
        c[1, rank] = c[0, 7 - rank]
    cuda.syncthreads()


def owner_goes_on_with_its_own(rank, a, b, c):
    """Two products into one tile, then each thread its own elements."""
    devmath.gemm(MM, 1.0, a, b, 0.0, c)
    devmath.gemm(MM, 1.0, a, b, 1.0, c)
    acc = devmath.accumulator(MM)
    for i in range(acc.size):
        if acc.in_bounds(i):
            c[acc.row(i), acc.col(i)] += 1


def many_read_what_one_writes_later(rank, a, b, c):
    total = a[0, 0] + b[0, 0]
    devmath.wait()
    if rank == 0:
        a[0, 0] = total
        a[0, 0] += a[0, 0]


def loop_of_loads(rank, a, b, c):
    for _ in range(3):
        devmath.wait()
        devmath.load(A, a)
        devmath.wait()
        multiply(rank, a, b, c)


@pytest.mark.parametrize(
    ("body", "corner"),
    [
        (plain_barrier_orders_elements, [[0, 1], [7, 6]]),
        (owner_goes_on_with_its_own, [[17, 17], [17, 17]]),
        (many_read_what_one_writes_later, [[1, 1], [1, 1]]),
        (loop_of_loads, [[8, 8], [8, 8]]),
    ],
)
def test_ordered_accesses_pass(body, corner):
    np.testing.assert_array_equal(launch(body)[:2, :2], corner)
