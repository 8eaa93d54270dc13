"""Where kernel code makes a call: for messages, and to tell the tiles of one line from those of another."""

import sys
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from numba.cuda.simulator.kernel import FakeCUDAKernel

_PACKAGE = __name__.partition(".")[0]


def caller() -> FrameType:
    """The frame of kernel code that called a verb: the innermost outside this package."""
    frame = sys._getframe(1)
    while frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE and frame.f_back:
        frame = frame.f_back
    return frame


def device_function(frame: FrameType | None) -> FakeCUDAKernel | None:
    """The device function that a frame is part of; None for the kernel. Two of one factory share their code only."""
    while frame and frame.f_code is not FakeCUDAKernel.__call__.__code__:
        frame = frame.f_back
    return frame.f_locals["self"] if frame else None


def line_of_call() -> tuple[Any, ...]:
    """Where the call stands that kernel code is making now: the same at each run of that line."""
    frame = caller()
    return (device_function(frame), frame.f_code, frame.f_lasti)


@dataclass(frozen=True)
class Call:
    """A use of a verb or of a tile, for messages.

    Parameters
    ----------
    what : str
        For example ``"devmath.load"``.
    site : str
        File and line.
    """

    what: str
    site: str

    @classmethod
    def here(cls, what: str) -> "Call":
        """The call that kernel code is making now."""
        frame = caller()
        return cls(what, f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}")

    def __str__(self) -> str:
        return f"{self.what} at {self.site}"
