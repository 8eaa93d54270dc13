"""``python -m devmath info`` says what works here; ``python -m devmath run FILE`` runs a script where it can run."""

import argparse
import os
import platform
import runpy
import subprocess
import sys
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from numba import cuda
from numba.cuda.core import config

from . import __version__
from .errors import CompileError, ToolchainError
from .lto import arch, cache, toolchain
from .lto.compile import run_nvrtc
from .lto.unit import Unit

_PACKAGES = ("numba-cuda", "numba", "cuda-core", "cuda-bindings", "numpy")


@dataclass(frozen=True)
class Gpu:
    """The GPU that a kernel would run on."""

    name: str
    compute_capability: tuple[int, int]

    def __str__(self) -> str:
        major, minor = self.compute_capability
        return f"{self.name} (compute capability {major}.{minor})"

    @property
    def is_supported(self) -> bool:
        """True where devmath has code for it."""
        return self.compute_capability >= arch.MINIMUM_COMPUTE_CAPABILITY


def find_gpu() -> Gpu | None:
    """Return the first visible GPU; None where there is none, or the simulator stands in for it."""
    if config.ENABLE_CUDASIM or not cuda.is_available():
        return None
    device = cuda.gpus[0]
    return Gpu(device.name, tuple(device.compute_capability))


def driver_version() -> tuple[int, int] | None:
    """Newest CUDA version that the driver knows; None where there is no driver."""
    from cuda.bindings import driver

    try:
        _, number = driver.cuDriverGetVersion()  # 13020 is CUDA 13.2
    except RuntimeError:
        return None
    return number // 1000, number % 1000 // 10


@dataclass
class Report:
    """What `info` found.

    Parameters
    ----------
    rows : list of (str, str)
        Facts: a name and its value.
    problems : list of str
        What keeps kernels from being compiled or run, each with its remedy.
    advice : list of str
        What costs time or features only.
    """

    rows: list[tuple[str, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.rows)
        lines = [f"{name:{width}}  {value}" for name, value in self.rows]
        lines += [f"problem: {text}" for text in self.problems]
        lines += [f"note: {text}" for text in self.advice]
        return "\n".join(lines)


def report_packages(report: Report) -> None:
    """Versions of Python and of the packages that devmath stands on."""
    report.rows += [("devmath", __version__), ("python", platform.python_version())]
    report.rows += [(name, version(name)) for name in _PACKAGES]


def report_libraries(report: Report) -> None:
    """Versions of the compiler libraries, and whether they fit together."""
    for name, library_version in (("NVRTC", toolchain.nvrtc_version), ("nvJitLink", toolchain.nvjitlink_version)):
        try:
            report.rows.append((name, toolchain.format_version(library_version())))
        except ToolchainError:
            report.rows.append((name, "missing"))
    try:
        toolchain.check()
    except ToolchainError as error:
        report.problems.append(str(error))


def report_driver(report: Report) -> None:
    """The driver, and whether it runs what the compiler libraries make."""
    known = driver_version()
    report.rows.append(("driver", f"CUDA {toolchain.format_version(known)}" if known else "none"))
    try:
        made_by = toolchain.nvrtc_version()
    except ToolchainError:
        return  # reported with the libraries
    if known and known[0] < made_by[0]:
        report.problems.append(
            f"the driver must know CUDA {made_by[0]}, got {toolchain.format_version(known)}; "
            f"remedy: update the driver, or pip install 'devmath[cu{known[0]}]'"
        )


def report_gpu(report: Report, gpu: Gpu | None) -> None:
    """The GPU; a machine without one has the simulator."""
    if gpu is None:
        reason = "NUMBA_ENABLE_CUDASIM is set" if config.ENABLE_CUDASIM else "kernels run in the simulator"
        report.rows.append(("GPU", f"none ({reason})"))
        return
    report.rows.append(("GPU", str(gpu)))
    if not gpu.is_supported:
        report.problems.append(
            f"the GPU must have compute capability 8.0 or newer, got {gpu}; remedy: python -m devmath run, which "
            "uses the simulator then"
        )


def report_cache(report: Report) -> None:
    """Folder and size of the disk cache."""
    try:
        cache.check_writable()
        state = cache.info()
    except OSError as error:
        report.rows.append(("cache", "none"))
        report.advice.append(f"every process compiles anew ({error}); remedy: set DEVMATH_CACHE_DIR")
    except ValueError as error:
        report.problems.append(f"{error}; remedy: unset it")
    else:
        used, limit = state.size_bytes / 2**20, state.limit_bytes / 2**20
        report.rows.append(("cache", f"{state.folder} ({state.entries} units, {used:.1f} of {limit:.0f} MiB)"))


def report_targets(report: Report, gpu: Gpu | None) -> None:
    """Which architectures compile: NVRTC runs for each. An older NVRTC need not know the newest of them."""
    try:
        toolchain.check()
    except ToolchainError:
        return  # reported with the libraries
    probe, errors = Unit.render("probe", _probe_source), {}
    needed = arch.arch_name(gpu.compute_capability) if gpu and gpu.is_supported else arch.ARCHITECTURES[0]
    targets = dict.fromkeys((*arch.ARCHITECTURES, needed))
    for target in targets:
        try:
            run_nvrtc(probe, target)
        except CompileError as error:
            errors[target] = error
    report.rows.append(("compiles for", ", ".join(target for target in targets if target not in errors) or "nothing"))
    if needed in errors:
        report.problems.append(f"{errors[needed]}\nremedy: pip install --upgrade --force-reinstall 'devmath[cu13]'")


def _probe_source(symbol: str) -> str:
    return f'#include <devmath/platform.cuh>\nextern "C" __device__ void {symbol}(float* x) {{ *x += 1; }}\n'


def info() -> int:
    """Print versions, GPU, cache, targets and problems; the exit status is 1 where something needed is broken."""
    report, gpu = Report(), find_gpu()
    report_packages(report)
    report_libraries(report)
    report_driver(report)
    report_gpu(report, gpu)
    report_cache(report)
    report_targets(report, gpu)
    print(report)
    return 1 if report.problems else 0


def run(script: str, arguments: list[str]) -> int:
    """Run a script as ``__main__``, on the GPU where there is one, else in the simulator; return its exit status."""
    gpu = find_gpu()
    if not config.ENABLE_CUDASIM and not (gpu and gpu.is_supported):
        # Numba reads the variable when it is imported, which has happened: a fresh interpreter is needed.
        command = [sys.executable, "-m", "devmath", "run", script, *arguments]
        return subprocess.call(command, env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"})
    print(f"devmath: {script} runs {f'on {gpu}' if gpu else 'in the simulator'}", flush=True)
    sys.argv = [script, *arguments]
    sys.path.insert(0, str(Path(script).resolve().parent))
    runpy.run_path(script, run_name="__main__")
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Entry point: parse the command line, return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m devmath", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("info", help="versions, GPU, cache, targets and every problem with its remedy")
    run_parser = commands.add_parser("run", help="run a script on the GPU where there is one, else in the simulator")
    run_parser.add_argument("script", metavar="FILE", help="a Python file")
    run_parser.add_argument("arguments", metavar="ARGS", nargs=argparse.REMAINDER, help="passed on to the script")
    chosen = parser.parse_args(arguments)
    if chosen.command == "info":
        return info()
    if not Path(chosen.script).is_file():
        run_parser.error(f"FILE must be a Python file, got {chosen.script!r}")
    return run(chosen.script, chosen.arguments)


if __name__ == "__main__":
    sys.exit(main())
