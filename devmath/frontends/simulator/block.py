"""The threads of a block: barriers that do not poll, calls that every thread must make, and the first error.

Numba's simulator runs each CUDA thread as a Python thread and polls them all for a barrier. The classes here take the
place of its two, with the same rules: a barrier opens once every thread that still runs has reached it, and an error in
one thread ends them all. What they add: the first error wins, no matter what it causes in other threads; the threads of
a warp meet by themselves, where a call is theirs; and a call that only some threads make is an error, not a deadlock.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numba.cuda.simulator import kernel

from ...blas_device import Gemm
from ...errors import DeviceOnlyError, SimulationError
from ...fft_device import FFT
from .. import kernel_rules
from .calls import Call

_WARP = 32
_GRACE_SECONDS = 1.0  # for the other threads to end after an error; one that loops for ever is left behind


@dataclass
class _Meeting:
    """A call that every thread of a team must make: what each brought, and the result once all have."""

    call: Call
    contributions: dict[int, Any] = field(default_factory=dict)
    result: Any = None
    complete: bool = False


class Team:
    """Threads that make calls together: those of the block, or of one of its warps.

    Parameters
    ----------
    name : str
        In the words of a message.
    ranks : range
        Their ranks in the block.

    Attributes
    ----------
    epoch : int
        Barriers that all of them have passed, those of the block included: accesses of one epoch are unordered.
    landing : collections.deque of set of Tile
        Of a warp: the tiles of each load under way, the oldest first.
    """

    def __init__(self, name: str, ranks: range):
        self.name, self.ranks = name, ranks
        self.epoch = 0
        self.landing: deque[set[Any]] = deque()
        self.meetings: dict[Any, _Meeting] = {}
        self.alive = len(ranks)
        self.generation = self.waiting = self.waiting_plainly = 0

    def __str__(self) -> str:
        return self.name


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

    @cached_property
    def held(self) -> dict[Any, Any]:
        """Registers by the line that makes them."""
        return {}

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
    team : Team
        All threads.
    warps : list of Team
        The same by warps.
    tiles : dict
        Tiles, and stacks of them, by the place in the kernel that asked for them.
    all_tiles : list of Tile
        The same one by one.
    shared_bytes : dict
        Shared memory by the place, or by the size of the buffer through which transforms exchange elements.
    """

    def __init__(self, f: Callable[..., Any], grid_dim: Any, block_dim: Any, debug: bool):
        super().__init__(f, grid_dim, block_dim, debug)
        self.size, self.blocks = math.prod(block_dim), grid_dim[0]
        self.lock = threading.RLock()
        self.team = Team("the block", range(self.size))
        starts = range(0, self.size, _WARP)
        self.warps = [Team(f"warp {i // _WARP}", range(i, min(i + _WARP, self.size))) for i in starts]
        self.tiles: dict[Any, Any] = {}
        self.all_tiles: list[Any] = []
        self.shared_bytes: dict[Any, int] = {}
        self._descriptor: Gemm | FFT | None = None
        self._barrier = threading.Condition(self.lock)
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
            for team in (self.team, self.warp_of(thread)):
                team.alive -= 1
            if thread.exception and self._failed is None:
                self._failed = thread
                self._barrier.notify_all()
            self._open_where_all_wait()
            if self.team.alive == 0 or self._failed:
                self._ended.set()

    def warp_of(self, thread: Thread) -> Team:
        """The warp that a thread is part of."""
        return self.warps[thread.thread_id // _WARP]

    def barrier(self, team: Team | None = None, *, plain: bool = True) -> None:
        """Wait until every thread of a team that still runs is here. A plain one is ``cuda.syncthreads()``."""
        team = team or self.team
        with self.lock:
            generation = team.generation
            team.waiting += 1
            team.waiting_plainly += plain
            self._open_where_all_wait()
            while team.generation == generation and not self._failed:
                self._barrier.wait()
            if self._failed:
                raise _AbortedError

    def start_landing(self, tile: Any) -> None:
        """Take note of a load under way, made by each warp that shares the tile; one of all its products is one."""
        if tile.team is self.team:
            for warp in self.warps:
                warp.landing.append({tile})
        elif tile.first == tile.team.ranks.start:
            tile.team.landing.append({tile})
        else:
            tile.team.landing[-1].add(tile)

    def land(self, team: Team, spared: int) -> None:
        """Complete the loads that the warps of a team have made, into its tiles, but for the newest of each warp."""
        warps = self.warps if team is self.team else [team]
        for warp in warps:
            while len(warp.landing) > spared:
                warp.landing.popleft()
        for tile in self.all_tiles:
            # What the whole block loads is there for none before all warps have waited.
            if team in (self.team, tile.team) and not any(tile in load for warp in warps for load in warp.landing):
                tile.land()

    def pass_epoch(self, team: Team) -> None:
        """Order what the threads of a team did so far before what they do from now on."""
        for other in (self.team, *self.warps) if team is self.team else (team,):
            other.epoch += 1

    def _open_where_all_wait(self) -> None:
        teams = (self.team, *self.warps)
        ready = [team for team in teams if 0 < team.waiting == team.alive]
        if not ready and 0 < sum(team.waiting for team in teams) == self.team.alive:
            # No thread can go on: let those go that can say why, of the call that the fewest are missing from.
            ready = sorted((team for team in teams if team.meetings), key=lambda team: len(team.ranks) - team.waiting)[
                :1
            ]
        for team in ready:
            if team.waiting_plainly == team.waiting:
                self.pass_epoch(team)
            team.waiting = team.waiting_plainly = 0
            team.generation += 1
        if ready:
            self._barrier.notify_all()

    def meet(
        self,
        thread: Thread,
        call: Call,
        same: Any,
        contribution: Any,
        work: Callable[[list[Any]], Any],
        team: Team | None = None,
    ) -> Any:
        """Make a call together with every other thread of the block, or of a team.

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
        team : Team, optional
            Who must make the call: all threads by default.

        Returns
        -------
        object
            What `work` returned.

        Raises
        ------
        SimulationError
            If all other threads wait or have ended without making this call.
        """
        team = team or self.team
        key = (call.what, same)
        with self.lock:
            meeting = team.meetings.setdefault(key, _Meeting(call))
            meeting.contributions[thread.thread_id] = contribution
            if len(meeting.contributions) == len(team.ranks):
                meeting.result = work([meeting.contributions[rank] for rank in team.ranks])
                meeting.complete = True
                del team.meetings[key]
        self.barrier(team, plain=False)
        if not meeting.complete:
            raise SimulationError(self._describe_stuck(team))
        return meeting.result

    def _describe_stuck(self, team: Team) -> str:
        largest, *others = sorted(team.meetings.values(), key=_attendance, reverse=True)
        missing = set(team.ranks).difference(largest.contributions)
        text = (
            f"every thread of {team} must call {largest.call} with the same arguments, missing are threads"
            f" {', '.join(_ranges(missing))} of {self.size}"
        )
        elsewhere: dict[str, set[int]] = {}
        meetings = (
            meeting for other in (self.team, *self.warps) if other is not team for meeting in other.meetings.values()
        )
        for other in (*others, *meetings):
            elsewhere.setdefault(str(other.call), set()).update(missing.intersection(other.contributions))
        for call, ranks in elsewhere.items():
            if ranks:
                text += f"; threads {', '.join(_ranges(ranks))} called {call}"
        return text

    def bind(self, desc: Gemm | FFT) -> None:
        """Check that the block has the threads that a descriptor is made for, and that descriptors agree."""
        if desc is self._descriptor:
            return
        first = self._descriptor or desc
        kernel_rules.agree_on_threads(first, desc)
        kernel_rules.block_of(desc, tuple(self._block_dim))
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
