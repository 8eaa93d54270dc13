"""Timing by CUDA events, interleaved over contenders, so that clocks and neighbours hit all of them alike."""

import functools
import statistics
import warnings
from collections.abc import Callable, Mapping

from numba import cuda
from numba.cuda.core.errors import NumbaPerformanceWarning

Contender = Callable[[], None]

LAUNCH_MICROSECONDS = 100  # a slow launch from Python


def seconds_each(contenders: Mapping[str, Contender], rounds: int, repeats: int) -> dict[str, list[float]]:
    """Time every contender once a round, in rounds of A, B, C, A, B, C, ...

    Parameters
    ----------
    contenders : mapping of str to callable
        Each enqueues its work on the legacy default stream.
    rounds : int
        Measurements of each.
    repeats : int
        Calls of a contender between two events.

    Returns
    -------
    dict of str to list of float
        Seconds a call, one number a round.

    Notes
    -----
    The GPU sleeps before the first event until all calls are enqueued: kernels shorter than their launch from Python
    run back to back too.
    """
    for run in contenders.values():
        run()
        run()
    cuda.synchronize()
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    start, stop = cuda.event(), cuda.event()
    for _ in range(rounds):
        for name, run in contenders.items():
            _sleep_launch()(repeats * LAUNCH_MICROSECONDS)
            start.record()
            for _ in range(repeats):
                run()
            stop.record()
            stop.synchronize()
            seconds[name].append(cuda.event_elapsed_time(start, stop) / 1e3 / repeats)
    return seconds


def median_of_allocations(measured: list[dict[str, list[float]]]) -> dict[str, float]:
    """Median over the rounds of all allocations, in seconds."""
    return {name: statistics.median(s for seconds in measured for s in seconds[name]) for name in measured[0]}


@functools.cache
def _sleep_launch() -> Callable[[int], None]:
    """A launch that keeps the default stream waiting for so many microseconds."""

    @cuda.jit
    def sleep(microseconds):
        for _ in range(microseconds // 10):
            cuda.nanosleep(10_000)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumbaPerformanceWarning)  # one thread is all that a sleep takes
        return sleep[1, 1]
