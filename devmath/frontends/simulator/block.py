"""The threads of a block: a barrier that does not poll, calls that every thread must make, and the first error.

Numba's simulator runs each CUDA thread as a Python thread and polls them all for a barrier. The classes here take the
place of its two, with the same rules: a barrier opens once every thread that still runs has reached it, and an error in
one thread ends them all. What they add: the first error wins, no matter what it causes in other threads; and a call
that only some threads make is an error, not a deadlock.
"""

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba.cuda.simulator import kernel

from ...blas_device import Gemm
from ...errors import DeviceOnlyError, SimulationError
from ...fft_device import FFT
from .. import rules
from .calls import Call

_GRACE_SECONDS = 1.0  # for the other threads to end after an error; one that loops for ever is left behind


@dataclass
class _Meeting:
    """A call that every thread of the block must make: what each brought, and the result once all have."""

    call: Call
    contributions: dict[int, Any] = field(default_factory=dict)
    result: Any = None
    complete: bool = False


class _AbortedError(Exception):
    """Ends a thread because another one failed; never seen outside."""


class Thread(kernel.BlockThread):
    """One CUDA thread. ``thread_id`` is its rank in the block, x running fastest.

    Attributes
    ----------
    has_mainloop : bool
        Whether it has entered a loop over tiles.
    open_loop : Call or None
        That loop, until it has come to its end.
    """

    _manager: "Block"
    has_mainloop: bool = False
    open_loop: Call | None = None
    exception: Any

    @property
    def block(self) -> "Block":
        return self._manager

    def run(self) -> None:
        try:
            super().run()
            if self.open_loop and self.exception is None:
                message = f"the loop over {self.open_loop} must run to its end, got a thread that left it"
                self.exception = (SimulationError(message), None)
        except Exception as error:
            # Numba builds the error anew from one string, to name the thread. Not every class can be built so.
            original = error.__context__ or error
            self.exception = (original, original.__traceback__)
        finally:
            self.block.leave(self)

    def syncthreads(self) -> None:
        self.block.barrier()


class Block(kernel.BlockManager):
    """One block of threads while it runs.

    Attributes
    ----------
    size : int
        Threads of the block.
    blocks : int
        Blocks of the grid along x.
    lock : threading.RLock
        Guards everything that threads share.
    epoch : int
        Barriers that every thread has passed: accesses of one epoch are unordered.
    tiles : dict
        Tiles by the place in the kernel that asked for them.
    shared_bytes : dict
        Shared memory by the place, or by the size of the buffer through which transforms exchange elements.
    """

    def __init__(self, f: Callable[..., Any], grid_dim: Any, block_dim: Any, debug: bool):
        super().__init__(f, grid_dim, block_dim, debug)
        self.size, self.blocks = math.prod(block_dim), grid_dim[0]
        self.lock = threading.RLock()
        self.epoch = 0
        self.tiles: dict[Any, Any] = {}
        self.shared_bytes: dict[Any, int] = {}
        self._descriptor: Gemm | FFT | None = None
        self._meetings: dict[Any, _Meeting] = {}
        self._barrier = threading.Condition(self.lock)
        self._generation = self._waiting = self._waiting_plainly = 0
        self._alive = self.size
        self._failed: Thread | None = None
        self._ended = threading.Event()

    def run(self, grid_point: tuple[int, ...], *args: Any) -> None:
        """Run the kernel function for every thread of the block; raise the first error."""

        def target() -> None:
            self._f(*args)

        threads = [Thread(target, self, grid_point, point, self._debug) for point in np.ndindex(*self._block_dim)]
        for thread in threads:
            thread.start()
        self._ended.wait()
        if self._failed is None:
            return
        deadline = time.monotonic() + _GRACE_SECONDS
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        error, traceback = self._failed.exception
        raise error.with_traceback(traceback)

    def leave(self, thread: Thread) -> None:
        """A thread has ended: its error ends the others, its return lets them pass the next barrier without it."""
        with self.lock:
            self._alive -= 1
            if thread.exception and self._failed is None:
                self._failed = thread
                self._barrier.notify_all()
            self._open_if_all_wait()
            if self._alive == 0 or self._failed:
                self._ended.set()

    def barrier(self, *, plain: bool = True) -> None:
        """Wait until every thread that still runs is here. A plain one is ``cuda.syncthreads()``."""
        with self.lock:
            generation = self._generation
            self._waiting += 1
            self._waiting_plainly += plain
            self._open_if_all_wait()
            while self._generation == generation and not self._failed:
                self._barrier.wait()
            if self._failed:
                raise _AbortedError

    def _open_if_all_wait(self) -> None:
        if self._waiting == 0 or self._waiting < self._alive:
            return
        if self._waiting_plainly == self._waiting:
            self.epoch += 1
        self._waiting = self._waiting_plainly = 0
        self._generation += 1
        self._barrier.notify_all()

    def meet(self, thread: Thread, call: Call, same: Any, contribution: Any, work: Callable[[list[Any]], Any]) -> Any:
        """Make a call together with every other thread of the block.

        Parameters
        ----------
        thread : Thread
            The calling thread.
        call : Call
            What is called, and where.
        same : hashable
            What all threads must agree on, beside the verb.
        contribution : object
            What this thread brings.
        work : callable
            Applied once, by the last thread to arrive, to the contributions in order of rank.

        Returns
        -------
        object
            What `work` returned.

        Raises
        ------
        SimulationError
            If all other threads wait or have ended without making this call.
        """
        key = (call.what, same)
        with self.lock:
            meeting = self._meetings.setdefault(key, _Meeting(call))
            meeting.contributions[thread.thread_id] = contribution
            if len(meeting.contributions) == self.size:
                meeting.result = work([meeting.contributions[rank] for rank in range(self.size)])
                meeting.complete = True
                del self._meetings[key]
        self.barrier(plain=False)
        if not meeting.complete:
            raise SimulationError(self._describe_stuck())
        return meeting.result

    def _describe_stuck(self) -> str:
        largest, *others = sorted(self._meetings.values(), key=_attendance, reverse=True)
        missing = set(range(self.size)).difference(largest.contributions)
        text = (
            f"every thread of the block must call {largest.call} with the same arguments, missing are threads"
            f" {', '.join(_ranges(missing))} of {self.size}"
        )
        elsewhere: dict[str, set[int]] = {}
        for other in others:
            elsewhere.setdefault(str(other.call), set()).update(other.contributions)
        for call, ranks in elsewhere.items():
            text += f"; threads {', '.join(_ranges(ranks))} called {call}"
        return text

    def bind(self, desc: Gemm | FFT) -> None:
        """Check that the block has the threads that a descriptor is made for, and that descriptors agree."""
        if desc is self._descriptor:
            return
        first = self._descriptor or desc
        rules.agree_on_threads(first, desc)
        rules.block_of(desc, tuple(self._block_dim))
        self._descriptor = first


def _attendance(meeting: _Meeting) -> int:
    return len(meeting.contributions)


def _ranges(ranks: Iterable[int]) -> Iterator[str]:
    """Runs of consecutive numbers: 0-3, 7."""
    ordered = sorted(ranks)
    starts = [i for i, rank in enumerate(ordered) if i == 0 or rank != ordered[i - 1] + 1]
    for start, end in zip(starts, [*starts[1:], len(ordered)], strict=True):
        first, last = ordered[start], ordered[end - 1]
        yield str(first) if first == last else f"{first}-{last}"


def current_thread(verb: str) -> Thread:
    """The CUDA thread that is calling a verb."""
    thread = threading.current_thread()
    if not isinstance(thread, Thread):
        raise DeviceOnlyError(f"devmath.{verb} can only be called inside a @cuda.jit kernel")
    return thread


def install() -> None:
    """Have Numba's simulator run its blocks with `Block`; it offers no hook for this."""
    kernel.BlockManager = Block
