"""Batched complex float32 transforms beside a copy of the same bytes, cuFFT, and nvmath.device where it is installed.

    python -m benchmarks.fft_copy [--all] [--json PATH]

A transform that reads and writes its data once can be no faster than a copy: the figure of merit is the share of it.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cupy
import numpy as np
from numba import cuda

import devmath
from benchmarks import report
from benchmarks.timing import median_of_allocations, seconds_each
from tests import kernels

BATCH_BYTES = 2**29
SIZES = (256, 1024, 4096)
ALL_SIZES = tuple(2**p for p in range(1, 14))
CHECKED_ROWS = 64


@dataclass
class Row:
    """One line of the table: bandwidths in GB/s, counting every byte once read and once written."""

    n: int
    copy: float
    devmath: float
    cufft: float
    nvmath: float | None
    share_of_copy: float
    spread: float
    error: float
    registers: int
    local_bytes: int
    first_call_s: float


def nvmath_launcher(n: int) -> Callable[[Any, Any], Callable[[], None]] | None:
    """The same by nvmath.device as it suggests; None without it, and beyond the 48 KB that Numba lets it have."""
    try:
        from nvmath.device import FFT
    except ImportError:
        return None
    fft = FFT(
        fft_type="c2c",
        size=n,
        precision=np.float32,
        direction="forward",
        execution="Block",
        ffts_per_block="suggested",
    )
    if fft.shared_memory_size > 48 * 1024:
        return None
    elements, stride, per_block = fft.elements_per_thread, fft.stride, fft.ffts_per_block
    storage, value_type = fft.storage_size, fft.value_type

    @cuda.jit
    def kernel(x, y):
        data = cuda.local.array(shape=(storage,), dtype=value_type)
        shared = cuda.shared.array(shape=(0,), dtype=value_type)
        row = cuda.blockIdx.x * per_block + cuda.threadIdx.y
        if row >= x.shape[0]:
            return
        for i in range(elements):
            data[i] = x[row, cuda.threadIdx.x + i * stride]
        fft.execute(data, shared)
        for i in range(elements):
            y[row, cuda.threadIdx.x + i * stride] = data[i]

    def launcher(x: Any, y: Any) -> Callable[[], None]:
        grid = -(-x.shape[0] // per_block)
        configured = kernel[grid, fft.block_dim, 0, fft.shared_memory_size]
        return lambda: configured(x, y)

    return launcher


def contenders(fft: devmath.FFT, kernel: Any, peer: Any, x: Any, y: Any) -> dict[str, Callable[[], None]]:
    """What is timed, all on the same two arrays. A CuPy array is wrapped once: Numba's look at it is not our time."""
    dx, dy = cuda.as_cuda_array(x), cuda.as_cuda_array(y)
    launch = kernel[fft.grid(x.shape[0]), fft.block_dim]
    plan = cupy.cuda.cufft.Plan1d(fft.n, cupy.cuda.cufft.CUFFT_C2C, x.shape[0])
    runs = {
        "copy": lambda: cupy.copyto(y, x),
        "devmath": lambda: launch(dx, dy),
        "cufft": lambda: plan.fft(x, y, cupy.cuda.cufft.CUFFT_FORWARD),
    }
    return runs | ({"nvmath": peer(dx, dy)} if peer else {})


def error_of(run: Callable[[], None], x: Any, y: Any) -> float:
    """Largest relative L2 error of the first, middle and last rows against NumPy in double precision."""
    y[...] = np.nan
    run()
    middle = x.shape[0] // 2
    errors = []
    for first in (0, middle, x.shape[0] - CHECKED_ROWS):
        rows = slice(first, first + CHECKED_ROWS)
        want = np.fft.fft(cupy.asnumpy(x[rows]).astype(np.complex128))
        errors.append(float(np.linalg.norm(cupy.asnumpy(y[rows]) - want) / np.linalg.norm(want)))
    return max(errors)


def measure(n: int, allocations: int, rounds: int, repeats: int) -> Row:
    """Time all contenders at one size, on fresh arrays for each allocation."""
    fft = devmath.FFT(n)
    kernel, peer = kernels.fft_registers(fft), nvmath_launcher(n)
    random = cupy.random.default_rng()
    measured, error, first_call_s = [], 0.0, 0.0
    for _ in range(allocations):
        count = BATCH_BYTES // (8 * n)
        x = random.standard_normal((count, 2 * n), dtype=np.float32).view(np.complex64)
        y = cupy.empty_like(x)
        runs = contenders(fft, kernel, peer, x, y)
        cuda.synchronize()
        error = max(error, error_of(runs["devmath"], x, y))
        first_call_s = first_call_s or first_call_seconds(fft, x, y)
        measured.append(seconds_each(runs, rounds, repeats))
        del x, y, runs
    median = median_of_allocations(measured)
    gigabytes = 2 * BATCH_BYTES / 1e9
    ours = [s for seconds in measured for s in seconds["devmath"]]
    return Row(
        n=n,
        copy=gigabytes / median["copy"],
        devmath=gigabytes / median["devmath"],
        cufft=gigabytes / median["cufft"],
        nvmath=gigabytes / median["nvmath"] if peer else None,
        share_of_copy=median["copy"] / median["devmath"],
        spread=(max(ours) - min(ours)) / statistics.median(ours),
        error=error,
        registers=next(iter(kernel.get_regs_per_thread().values())),
        local_bytes=next(iter(kernel.get_local_mem_per_thread().values())),
        first_call_s=first_call_s,
    )


def first_call_seconds(fft: devmath.FFT, x: Any, y: Any) -> float:
    """Seconds from a fresh kernel to its result; our own units are compiled and cached by now."""
    kernel = kernels.fft_registers(fft)
    dx, dy = cuda.as_cuda_array(x), cuda.as_cuda_array(y)
    began = time.perf_counter()
    kernel[fft.grid(x.shape[0]), fft.block_dim](dx, dy)
    cuda.synchronize()
    return time.perf_counter() - began


def table(rows: list[Row]) -> str:
    """The measurements, aligned."""
    titles = ["n", "copy", "devmath", "cuFFT", "nvmath", "of copy"]
    titles += ["spread", "error", "registers", "local", "first call"]
    lines = [
        [
            str(row.n),
            *(report.figure(x, ".0f") for x in (row.copy, row.devmath, row.cufft, row.nvmath)),
            f"{row.share_of_copy:.1%}",
            f"{row.spread:.1%}",
            f"{row.error:.1e}",
            str(row.registers),
            str(row.local_bytes),
            f"{row.first_call_s:.2f} s",
        ]
        for row in rows
    ]
    return report.table(titles, lines)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="every power of two from 2 to 8192")
    parser.add_argument("--allocations", type=int, default=3, help="pairs of fresh arrays (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=7, help="interleaved rounds each (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=10, help="calls between two events (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="write the measurements here")
    options = parser.parse_args()
    rows = []
    for n in ALL_SIZES if options.all else SIZES:
        rows.append(measure(n, options.allocations, options.rounds, options.repeats))
        print(f"measured n = {n}", flush=True)
    about = report.environment(batch_bytes=BATCH_BYTES)
    if options.json:
        report.write_json(options.json, about, rows)
    print(", ".join(f"{name} {value}" for name, value in about.items()))
    print(table(rows))


if __name__ == "__main__":
    main()
