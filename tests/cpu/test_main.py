"""``python -m devmath``: what `info` tells, and where `run` runs."""

import os
import re
import subprocess
import sys

import pytest

from devmath import __main__ as command_line
from devmath.errors import CompileError, ToolchainError
from devmath.lto import arch, toolchain

pytestmark = pytest.mark.usefixtures("cache_folder")

H200 = command_line.Gpu("NVIDIA H200", (9, 0))


@pytest.fixture
def info(monkeypatch, capsys):
    """Return a function that runs `info` as with this GPU and driver: (exit status, rows by name, other lines)."""

    def run_info(gpu=None, driver=None):
        monkeypatch.setattr(command_line, "find_gpu", lambda: gpu)
        monkeypatch.setattr(command_line, "driver_version", lambda: driver)
        status = command_line.main(["info"])
        lines = capsys.readouterr().out.splitlines()
        rest = [line for line in lines if line.startswith(("problem: ", "note: "))]
        rows = [re.split(" {2,}", line, maxsplit=1) for line in lines if re.match(r"\S.*  ", line)]
        return status, dict(rows), rest

    return run_info


def test_info_without_a_gpu(info, cache_folder):
    status, rows, rest = info()
    assert (status, rest) == (0, [])
    assert rows["NVRTC"] == toolchain.format_version(toolchain.nvrtc_version())
    assert rows["GPU"] == "none (kernels run in the simulator)"
    assert rows["driver"] == "none"
    assert rows["cache"] == f"{cache_folder} (0 units, 0.0 of 256 MiB)"
    for name in ("devmath", "python", "numba-cuda", "cuda-core", "nvJitLink"):
        assert rows[name]


def test_info_lists_the_architectures_that_compile(info, monkeypatch):
    def refuse_newest(unit, target):
        if target == "sm_120a":
            raise CompileError(unit.symbol, target, "invalid value for --gpu-architecture", unit.source, None)

    monkeypatch.setattr(command_line, "run_nvrtc", refuse_newest)
    status, rows, _ = info(H200)
    assert status == 0
    assert rows["compiles for"] == ", ".join(arch.ARCHITECTURES[:-1])


def test_info_with_a_gpu(info):
    status, rows, rest = info(H200, driver=(99, 0))
    assert (status, rest) == (0, [])
    assert rows["GPU"] == "NVIDIA H200 (compute capability 9.0)"
    assert rows["driver"] == "CUDA 99.0"


def test_info_knows_a_gpu_newer_than_the_tested_architectures(info):
    _, rows, _ = info(command_line.Gpu("NVIDIA B300", (10, 3)))
    assert "sm_103a" in rows["compiles for"]


@pytest.mark.parametrize(
    ("gpu", "driver", "problem"),
    [
        (command_line.Gpu("Tesla T4", (7, 5)), (13, 0), "compute capability 8.0 or newer, got Tesla T4"),
        (
            H200,
            (12, 4),
            "the driver must know CUDA 13, got 12.4; remedy: update the driver, or pip install 'devmath[cu12]'",
        ),
    ],
)
def test_info_names_what_is_wrong_with_gpu_and_driver(info, monkeypatch, gpu, driver, problem):
    monkeypatch.setattr(toolchain, "nvrtc_version", lambda: (13, 0))
    status, _, rest = info(gpu, driver)
    assert status == 1
    assert len(rest) == 1
    assert problem in rest[0]


def test_info_names_a_missing_library(info, monkeypatch):
    def missing():
        raise ToolchainError("NVRTC cannot be loaded; remedy: pip install 'devmath[cu13]'")

    toolchain.check.cache_clear()
    monkeypatch.setattr(toolchain, "nvrtc_version", missing)
    status, rows, rest = info(H200)
    assert status == 1
    assert rows["NVRTC"] == "missing"
    assert rest == ["problem: NVRTC cannot be loaded; remedy: pip install 'devmath[cu13]'"]


def test_info_names_a_target_that_does_not_compile(info, monkeypatch):
    def refuse(unit, target):
        raise CompileError(unit.symbol, target, "cannot open platform.cuh", unit.source, None)

    monkeypatch.setattr(command_line, "run_nvrtc", refuse)
    status, _, rest = info(H200)
    assert status == 1
    assert "does not compile for sm_90a" in rest[0]


def test_an_unusable_cache_is_not_a_failure(info, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DEVMATH_CACHE_DIR", str(tmp_path / "file" / "cache"))
    status, rows, rest = info()
    assert (status, rows["cache"]) == (0, "none")
    assert rest[0].startswith("note: every process compiles anew")


def test_a_wrong_cache_bound_is_a_failure(info, monkeypatch):
    monkeypatch.setenv("DEVMATH_CACHE_BYTES", "much")
    status, _, rest = info()
    assert status == 1
    assert rest == ["problem: DEVMATH_CACHE_BYTES must be a positive integer, got 'much'; remedy: unset it"]


@pytest.fixture
def script(tmp_path):
    """Return a script that prints how it was run and exits with status 3."""
    path = tmp_path / "script.py"
    path.write_text(
        "import sys\n"
        "from numba.cuda.core import config\n"
        "print(__name__, sys.argv[1:], config.ENABLE_CUDASIM)\n"
        "sys.exit(3)\n"
    )
    return path


def test_run_uses_the_simulator_where_there_is_no_gpu(script):
    command = [sys.executable, "-m", "devmath", "run", str(script), "--wav", "in", "out"]
    result = subprocess.run(
        command, env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"}, capture_output=True, text=True, check=False
    )
    assert result.stdout.splitlines() == [
        f"devmath: {script} runs in the simulator",
        "__main__ ['--wav', 'in', 'out'] 1",
    ]
    assert (result.returncode, result.stderr) == (3, "")


def test_run_uses_the_gpu_where_there_is_one(script, monkeypatch, capsys):
    monkeypatch.setattr(command_line, "find_gpu", lambda: H200)
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setattr(sys, "path", sys.path.copy())
    with pytest.raises(SystemExit) as stopped:
        command_line.main(["run", str(script), "1"])
    assert stopped.value.code == 3
    assert capsys.readouterr().out.splitlines() == [
        f"devmath: {script} runs on NVIDIA H200 (compute capability 9.0)",
        "__main__ ['1'] 0",
    ]


def test_run_refuses_a_file_that_is_not_there(capsys):
    with pytest.raises(SystemExit) as stopped:
        command_line.main(["run", "no_such_file.py"])
    assert stopped.value.code == 2
    assert "FILE must be a Python file, got 'no_such_file.py'" in capsys.readouterr().err
