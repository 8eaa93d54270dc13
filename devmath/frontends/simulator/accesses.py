"""Which thread last read and wrote each element of a tile, and whether a barrier has ordered it since.

Only barriers order the threads of a block, or of a warp. Two accesses of one element conflict if no barrier lies
between them, at least one is a write, and different threads made them.
"""

from typing import Any

import numpy as np

from .calls import Call

ANY = -1  # the thread of an access that the library deals out among those that share the tile: any of them
LANDING = np.iinfo(np.int64).max  # the epoch of an asynchronous write that devmath.wait has not completed


class Accesses:
    """The latest reads, or the latest writes, of the elements of a tile.

    `where` is an index of the tile's elements: two integers, arrays of them, or slices. `everyone` names the threads
    that share the tile.
    """

    def __init__(self, shape: tuple[int, int], everyone: str):
        self._everyone = everyone
        self._epoch = np.full(shape, -1, np.int64)
        self._thread = np.full(shape, ANY, np.int32)
        self._call = np.full(shape, None, object)

    def unordered(self, where: Any, epoch: int, thread: Any) -> Any:
        """True where the latest access is not ordered before one of `thread` in `epoch`."""
        return (self._epoch[where] >= epoch) & ((self._thread[where] != thread) | (np.asarray(thread) == ANY))

    def record(self, where: Any, epoch: int, thread: Any, call: Call) -> None:
        """Take note of an access; one that several threads make in an epoch is anyone's."""
        self._thread[where] = np.where(self.unordered(where, epoch, thread), ANY, thread)
        self._epoch[where] = epoch
        self._call[where] = call

    def land(self, epoch: int) -> None:
        """Complete the asynchronous writes, as of `epoch`."""
        self._epoch[self._epoch == LANDING] = epoch

    def describe(self, element: tuple[int, int]) -> str:
        """Who made the latest access to an element, and where."""
        return f"{self._call[element]} by {who(self._thread[element], self._everyone)}"


def who(thread: int, everyone: str) -> str:
    """A thread in the words of a message."""
    return everyone if thread == ANY else f"thread {thread}"
