"""The threads of a block: calls that some skip, the first error, and Numba's own barriers."""

import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from numba import cuda

import devmath
from devmath.frontends.simulator import block

ZEROS = np.zeros((8, 8), np.float32)
MM = devmath.Gemm(8, 8, 8, threads=64)
FFT = devmath.FFT(64, ffts_per_block=8, elements_per_thread=8)


def launch(body):
    """Run ``body(rank)`` in each of 64 threads."""

    @cuda.jit
    def kernel():
        body(cuda.threadIdx.x)

    kernel[1, 64]()


def gemm():
    devmath.gemm(MM, devmath.shared(MM.a), devmath.shared(MM.b), devmath.accumulator(MM))


def all_but_first_wait(rank):
    if rank > 0:
        devmath.wait()


def one_in_three_stays_away(rank):
    if rank % 3 or rank > 6:
        gemm()


def first_goes_to_another_verb(rank):
    if rank == 0:
        devmath.wait()
    else:
        devmath.fft(FFT, devmath.registers(FFT))


def last_takes_a_plain_barrier(rank):
    if rank == 63:
        cuda.syncthreads()
    else:
        devmath.wait()


def last_has_another_operand(rank):
    tiles = devmath.shared(MM.a), devmath.shared(MM.a)
    devmath.load(ZEROS, tiles[rank == 63])


def last_has_another_factor(rank):
    a, b, c = devmath.shared(MM.a), devmath.shared(MM.b), devmath.shared(MM.c)
    devmath.gemm(MM, 1.0 + (rank == 63), a, b, 0.0, c)


SKIPPED = {
    all_but_first_wait: r"devmath\.wait at test_block\.py:\d+ .*, missing are threads 0 of 64$",
    one_in_three_stays_away: r"devmath\.gemm at test_block\.py:\d+ .*, missing are threads 0, 3, 6 of 64$",
    first_goes_to_another_verb: r"devmath\.fft at .* missing are threads 0 of 64; threads 0 called devmath\.wait at",
    last_takes_a_plain_barrier: r"devmath\.wait at .* missing are threads 63 of 64$",
    last_has_another_operand: r"devmath\.load at .* with the same arguments, missing are threads 63 of 64; threads 63",
    last_has_another_factor: r"devmath\.gemm at .* with the same arguments, missing are threads 63 of 64; threads 63",
}


@pytest.mark.parametrize("body", SKIPPED, ids=[body.__name__ for body in SKIPPED])
def test_call_that_some_threads_skip(body):
    start = time.monotonic()
    with pytest.raises(devmath.SimulationError, match="every thread of the block must call " + SKIPPED[body]):
        launch(body)
    assert time.monotonic() - start < 10


def test_first_error_wins_over_what_follows_from_it():
    def body(rank):
        if rank == 40:
            raise KeyError("forty")
        devmath.wait()

    with pytest.raises(KeyError, match=r"tid=\[40, 0, 0\] ctaid=\[0, 0, 0\]: 'forty'"):
        launch(body)


class PairError(Exception):
    def __init__(self, first, second):
        super().__init__(first, second)


def test_error_that_no_string_makes():
    def body(rank):
        if rank == 3:
            raise PairError("three", rank)
        devmath.wait()

    with pytest.raises(PairError, match=r"\('three', 3\)"):
        launch(body)


def test_error_reaches_past_a_thread_that_never_ends(monkeypatch):
    monkeypatch.setattr(block, "_GRACE_SECONDS", 0.1)
    released = threading.Event()

    def body(rank):
        if rank == 1:
            raise ZeroDivisionError
        if rank == 2:
            released.wait()
        devmath.wait()

    with pytest.raises(ZeroDivisionError, match=r"tid=\[1, 0, 0\]"):
        launch(body)
    released.set()


def test_no_thread_is_left_behind():
    before = set(threading.enumerate())
    with pytest.raises(devmath.SimulationError):
        launch(all_but_first_wait)
    assert set(threading.enumerate()) <= before


def test_error_in_the_work_of_the_whole_block():
    def body(rank):
        tile = devmath.shared(MM.a)
        devmath.load(ZEROS, tile)
        devmath.gemm(MM, tile, devmath.shared(MM.b), devmath.accumulator(MM))

    with pytest.raises(devmath.SimulationError, match=r"devmath\.wait\(\) must come between"):
        launch(body)


def test_threads_that_have_ended_hold_no_barrier_up():
    """As on a GPU, and in Numba's own simulator."""
    passed = np.zeros(64, np.int64)

    @cuda.jit
    def kernel(passed):
        if cuda.threadIdx.x < 32:
            return
        cuda.syncthreads()
        passed[cuda.threadIdx.x] = 1

    kernel[1, 64](passed)
    assert passed.sum() == 32


def test_barriers_of_numba_keep_their_meaning():
    counts = np.zeros((3, 64), np.int64)

    @cuda.jit
    def kernel(counts):
        rank = cuda.threadIdx.x
        counts[0, rank] = cuda.syncthreads_count(rank < 5)
        counts[1, rank] = cuda.syncthreads_and(rank >= 0)
        counts[2, rank] = cuda.syncthreads_or(rank < 0)

    kernel[1, 64](counts)
    np.testing.assert_array_equal(counts, np.repeat([[5], [1], [0]], 64, axis=1))


def test_error_in_a_later_block_names_it():
    @cuda.jit
    def kernel():
        devmath.wait()
        if cuda.blockIdx.x == 2 and cuda.threadIdx.x == 7:
            raise ValueError("seven")

    with pytest.raises(ValueError, match=r"tid=\[7, 0, 0\] ctaid=\[2, 0, 0\]: seven"):
        kernel[4, 64]()


def test_constants_of_descriptors_and_fragments():
    seen = []

    @cuda.jit
    def kernel():
        v, acc = devmath.registers(FFT), devmath.accumulator(MM)
        if cuda.threadIdx.x == 9:
            seen.append([v.size, [v.row(i) for i in range(v.size)], [v.index(i) for i in range(v.size)]])
            seen.append([acc.size, acc.row(0), acc.col(0), acc.in_bounds(0), devmath.shared(MM.c).shape])

    kernel[1, 64]()
    assert seen == [
        [8, [1] * 8, [1, 9, 17, 25, 33, 41, 49, 57]],
        [1, MM.plan.fragment.row(9, 0), MM.plan.fragment.col(9, 0), True, (8, 8)],
    ]


def test_first_launch_of_a_process_is_simulated_too():
    code = (
        "import devmath\nfrom numba import cuda\nmm = devmath.Gemm(4, 4, 4)\n"
        "kernel = cuda.jit(lambda: devmath.wait())\nkernel[1, mm.block_dim]()\nprint('done')"
    )
    command = [sys.executable, "-W", "error", "-c", code]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "done\n"
