"""Batches of small products in one pass over memory, beside a copy of as many bytes and three libraries.

    python -m benchmarks.gemm_batched [--peer] [--only TEXT ...] [--jobs N] [--json PATH] [--plot PATH]

A product of small matrices takes less time than moving them: the figure of merit is the share of a copy's bandwidth.
cuBLAS (its strided batched product, through CuPy) and torch.bmm run wherever they are installed, nvmath.device with
--peer: it compiles for twenty seconds a case.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cupy
import numpy as np
from numba import cuda

import devmath
from benchmarks import limits, peers, report, side_by_side
from benchmarks.timing import median_of_allocations, seconds_each
from tests import batched_kernels
from tests.oracle import product, relative_error

CHECKED = 64  # products at each end of the batch and in the middle


@dataclass(frozen=True)
class Case:
    """A batch of products."""

    m: int
    n: int
    k: int
    dtype: str
    batch: int

    def __str__(self) -> str:
        return f"{self.batch} of {self.m}x{self.n}x{self.k} {self.dtype}"

    @property
    def size_bytes(self) -> int:
        """Bytes to read and to write."""
        return limits.batched_bytes(self.m, self.n, self.k, np.dtype(self.dtype).itemsize, self.batch)


CASES = (
    *(Case(n, n, n, dtype, batch) for dtype in ("float32", "float64") for n, batch in ((8, 2**20), (16, 2**20))),
    *(Case(32, 32, 32, dtype, 2**18) for dtype in ("float32", "float64")),
    # nvmath's own grid.
    *(Case(*size, "float32", 2**16) for size in ((8, 8, 8), (8, 16, 8), (16, 16, 8), (32, 32, 64))),
)

CONTENDERS = ("copy", "devmath", "nvmath", "cuBLAS", "torch")


@dataclass
class Row:
    """One line of the table: bandwidths in GB/s, counting A and B read once and C written once."""

    case: str
    megabytes: float
    in_cache: bool
    gigabytes_per_s: dict[str, float] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)
    registers: int = 0
    local_bytes: int = 0
    build_s: dict[str, float] = field(default_factory=dict)

    @property
    def share_of_copy(self) -> float:
        """Our bandwidth over that of a copy."""
        return self.gigabytes_per_s["devmath"] / self.gigabytes_per_s["copy"]


@dataclass
class Arrays:
    """Fresh operands of a batch, its result, and two halves of as many bytes for a copy."""

    a: Any
    b: Any
    c: Any
    source: Any
    target: Any

    @classmethod
    def of(cls, case: Case) -> "Arrays":
        """Random operands on the device."""
        random, dtype = cupy.random.default_rng(), np.dtype(case.dtype).type
        a = random.standard_normal((case.batch, case.m, case.k), dtype=dtype)
        b = random.standard_normal((case.batch, case.k, case.n), dtype=dtype)
        source = random.standard_normal(case.size_bytes // 16, dtype=np.float64)
        return cls(a, b, cupy.empty((case.batch, case.m, case.n), dtype), source, cupy.empty_like(source))

    def error_of(self, run: Callable[[], None]) -> float:
        """Largest relative error of the first, middle and last products against NumPy in double precision."""
        self.c[...] = np.nan
        run()
        cuda.synchronize()
        batch = self.c.shape[0]
        parts = [slice(first, first + CHECKED) for first in (0, batch // 2, batch - CHECKED)]
        errors = []
        for part in parts:
            a, b, c = (cupy.asnumpy(x[part]) for x in (self.a, self.b, self.c))
            errors.append(relative_error(c, product(a, b)))
        return max(errors)


def ours(mm: devmath.Gemm, kernel: Any, arrays: Arrays) -> Callable[[], None]:
    """Our kernel on some arrays. A CuPy array is wrapped once: Numba's look at it is not our time."""
    launch = kernel[mm.grid(arrays.a.shape[0]), mm.block_dim]
    da, db, dc = (cuda.as_cuda_array(x) for x in (arrays.a, arrays.b, arrays.c))
    return lambda: launch(da, db, dc)


def nvmath(peer: peers.PeerKernel, arrays: Arrays) -> Callable[[], None]:
    """nvmath.device's kernel on the same arrays, flat."""
    batch = arrays.a.shape[0]
    da, db, dc = (cuda.as_cuda_array(x.reshape(-1)) for x in (arrays.a, arrays.b, arrays.c))
    peer.build(da, db, dc, batch)
    launch = peer.launch(-(-batch // peer.products_per_block))
    return lambda: launch(da, db, dc, batch)


def contenders(mm: devmath.Gemm, kernel: Any, peer: Any, arrays: Arrays) -> dict[str, Callable[[], None]]:
    """What is timed, all on the same arrays."""
    runs = {
        "copy": lambda: cupy.copyto(arrays.target, arrays.source),
        "devmath": ours(mm, kernel, arrays),
        "cuBLAS": peers.cublas_batched(arrays.a, arrays.b, arrays.c),
    }
    if peer:
        runs["nvmath"] = nvmath(peer, arrays)
    if peers.installed("torch"):
        runs["torch"] = peers.torch_batched(arrays.a, arrays.b, arrays.c)
    return runs


def measure(case: Case, with_peer: bool, allocations: int, rounds: int, repeats: int) -> Row:
    """Time all contenders on one batch, on fresh arrays for each allocation."""
    mm = devmath.Gemm(case.m, case.n, case.k, case.dtype, execution="warp")
    kernel = batched_kernels.gemm_batched(mm)
    peer = peers.nvmath_batched(case.m, case.n, case.k, case.dtype) if with_peer else None
    in_cache = case.size_bytes < 4 * cuda.get_current_device().L2_CACHE_SIZE
    row = Row(str(case), case.size_bytes / 1e6, in_cache)
    measured = []
    for _ in range(allocations):
        arrays = Arrays.of(case)
        if not row.build_s:
            row.build_s = _build_seconds(mm, kernel, peer, arrays)
        runs = contenders(mm, kernel, peer, arrays)
        for name in runs.keys() - {"copy"}:
            row.errors[name] = max(row.errors.get(name, 0.0), arrays.error_of(runs[name]))
        with side_by_side.turn():
            measured.append(seconds_each(runs, rounds, repeats))
        del arrays, runs
    row.gigabytes_per_s = {name: case.size_bytes / s / 1e9 for name, s in median_of_allocations(measured).items()}
    row.registers = next(iter(kernel.get_regs_per_thread().values()))
    row.local_bytes = next(iter(kernel.get_local_mem_per_thread().values()))
    return row


def _build_seconds(mm: devmath.Gemm, kernel: Any, peer: Any, arrays: Arrays) -> dict[str, float]:
    """Seconds from a fresh kernel to its result, ours first."""
    builds: dict[str, Callable[[], Callable[[], None]]] = {"devmath": lambda: ours(mm, kernel, arrays)}
    if peer:
        builds["nvmath"] = lambda: nvmath(peer, arrays)
    seconds = {}
    for name, build in builds.items():
        began = time.perf_counter()
        run = build()
        run()
        cuda.synchronize()
        seconds[name] = time.perf_counter() - began
    return seconds


def table(rows: list[Row]) -> str:
    """The measurements, aligned."""
    titles = ["GB/s", "MB", "copy", "devmath", "of copy", *CONTENDERS[2:]]
    titles += ["error", "theirs", "registers", "local", "build s", "nvmath s"]
    return report.table(titles, [_line(row) for row in rows])


def _line(row: Row) -> list[str]:
    speeds = {name: report.figure(row.gigabytes_per_s.get(name), ".0f") for name in CONTENDERS}
    theirs = max((error for name, error in row.errors.items() if name != "devmath"), default=None)
    return [
        row.case,
        f"{row.megabytes:.0f}" + " (L2)" * row.in_cache,
        speeds["copy"],
        speeds["devmath"],
        f"{row.share_of_copy:.1%}",
        *(speeds[name] for name in CONTENDERS[2:]),
        report.figure(row.errors["devmath"], ".1e"),
        report.figure(theirs, ".1e"),
        str(row.registers),
        str(row.local_bytes),
        report.figure(row.build_s["devmath"], ".2f"),
        report.figure(row.build_s.get("nvmath"), ".1f"),
    ]


def bars(rows: list[Row]) -> dict[str, dict[str, float | None]]:
    """What the plot shows of each case: the copy last, as the limit."""
    names = (*CONTENDERS[1:], CONTENDERS[0])
    return {row.case: {name: row.gigabytes_per_s.get(name) for name in names} for row in rows}


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", action="store_true", help="nvmath.device too")
    side_by_side.add_options(parser)
    parser.add_argument("--allocations", type=int, default=3, help="sets of fresh arrays (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=7, help="interleaved rounds each (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=20, help="calls between two events (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="write the measurements here")
    parser.add_argument("--plot", type=Path, help="draw them here")
    options = parser.parse_args()
    with_peer = options.peer and peers.installed("nvmath")
    for package in ["torch"] + ["nvmath"] * options.peer:
        if not peers.installed(package):
            print(f"{package} is not installed: no column of it")
    tasks = [
        (case, with_peer, options.allocations, options.rounds, options.repeats)
        for case in side_by_side.chosen(CASES, options)
    ]
    rows = []
    for row in side_by_side.measure_each(measure, tasks, options.jobs):
        rows.append(row)
        print(f"measured {row.case}: {row.share_of_copy:.1%} of a copy", flush=True)
    settings = {name: getattr(options, name) for name in ("allocations", "rounds", "repeats")}
    about = report.environment(**settings)
    if options.json:
        report.write_json(options.json, about, rows)
    if options.plot:
        report.bars(options.plot, f"Batched products, {about['gpu']}", "GB/s, A and B read, C written", bars(rows))
    print(", ".join(f"{name} {value}" for name, value in about.items()))
    print(table(rows))


if __name__ == "__main__":
    main()
