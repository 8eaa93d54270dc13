"""Cases in processes of their own: built side by side, timed one after another."""

import argparse
import multiprocessing
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from benchmarks import first_kernel

Case = TypeVar("Case")

_turn: list[AbstractContextManager[Any]] = [nullcontext()]


def turn() -> AbstractContextManager[Any]:
    """What a process holds while it times the GPU."""
    return _turn[0]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of a benchmark of cases: which of them, and how many at a time."""
    parser.add_argument("--only", nargs="+", default=[""], metavar="TEXT", help="cases whose name contains such a text")
    parser.add_argument("--jobs", type=int, default=1, help="cases to build side by side (default: %(default)s)")


def chosen(cases: Iterable[Case], options: argparse.Namespace) -> list[Case]:
    """The cases that `--only` names."""
    return [case for case in cases if any(text in str(case) for text in options.only)]


def measure_each(measure: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], jobs: int) -> Iterator[Any]:
    """Yield ``measure(*arguments)`` for each of `arguments`, from `jobs` processes at a time.

    devmath's cache is an empty folder, as the time of NVRTC is part of what is measured.
    """
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as cache:
        begin = (context.Lock(), cache)
        with ProcessPoolExecutor(jobs, context, initializer=_begin, initargs=begin) as pool:
            for task in [pool.submit(measure, *some) for some in arguments]:
                yield task.result()


def _begin(lock: AbstractContextManager[Any], cache: str) -> None:
    """What a process does first."""
    _turn[0] = lock
    os.environ["DEVMATH_CACHE_DIR"] = cache
    first_kernel.watch_compilers()
