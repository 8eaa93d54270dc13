"""Seconds from the start of a process to its first result, with an empty disk cache and with a full one.

    python -m benchmarks.first_result [--peer] [--runs N] [--json PATH]

Each run is a process of its own. The row "numba" is a copy kernel without devmath: the part that any Numba kernel pays.
With --peer nvmath.device computes the same transform; it keeps no cache on disk.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ERROR_LIMIT = 1e-5


def run_once(kernel: str, cache_folder: str) -> dict[str, float]:
    """Seconds by stage of one process.

    Raises
    ------
    RuntimeError
        If its result is wrong.
    subprocess.CalledProcessError
        If it fails.
    """
    environment = os.environ | {"DEVMATH_CACHE_DIR": cache_folder, "NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS": "0"}
    command = [sys.executable, "-m", "benchmarks.first_kernel", kernel, repr(time.monotonic())]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if not report["error"] < ERROR_LIMIT:
        raise RuntimeError(f"{kernel}: relative error {report['error']:.1e}")
    return report["stages"]


def measure(kernel: str, runs: int) -> dict[str, dict[str, float]]:
    """Median seconds by stage: with an empty cache, each run in a new folder, and with a full one."""
    empty, full = [], []
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            empty.append(run_once(kernel, folder))
            full.append(run_once(kernel, folder))
    return {"empty": _medians(empty), "full": _medians(full)}


def _medians(runs: list[dict[str, float]]) -> dict[str, float]:
    return {stage: statistics.median(run[stage] for run in runs) for stage in runs[0]}


def table(measured: dict[str, dict[str, dict[str, float]]]) -> str:
    """The measurements, aligned."""
    stages = list(next(iter(measured.values()))["empty"])
    lines = [f"{'kernel':10}{'cache':7}" + "".join(f"{stage:>15}" for stage in stages)]
    for kernel, by_cache in measured.items():
        for cache, seconds in by_cache.items():
            lines.append(f"{kernel:10}{cache:7}" + "".join(f"{seconds[stage]:13.3f} s" for stage in stages))
    return "\n".join(lines)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", action="store_true", help="nvmath.device too")
    parser.add_argument("--runs", type=int, default=3, help="processes each (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="write the measurements here")
    options = parser.parse_args()
    kernels = ["numba", "gemm", "fft"] + ["peer-fft"] * options.peer
    measured = {kernel: measure(kernel, options.runs) for kernel in kernels}
    if options.json:
        options.json.write_text(json.dumps(measured, indent=1))
    print(table(measured))


if __name__ == "__main__":
    main()
