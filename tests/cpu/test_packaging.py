"""What a user installs and types: the wheel, the import, the set-up commands."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hatchling import build

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build the wheel; return it as an open archive."""
    folder = tmp_path_factory.mktemp("wheel")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        name = build.build_wheel(str(folder))
    with zipfile.ZipFile(folder / name) as archive:
        yield archive


def test_the_wheel_holds_the_package_and_its_headers(wheel):
    sources = {
        path.relative_to(ROOT).as_posix() for path in (ROOT / "devmath").rglob("*") if path.suffix in {".py", ".cuh"}
    }
    packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert packed == sources
    assert "devmath/lto/include/devmath/platform.cuh" in packed


def test_the_wheel_states_licence_and_requirements(wheel):
    (licence,) = (name for name in wheel.namelist() if name.endswith("/licenses/LICENSE"))
    assert wheel.read(licence) == (ROOT / "LICENSE").read_bytes()
    (metadata,) = (wheel.read(name).decode() for name in wheel.namelist() if name.endswith("/METADATA"))
    assert "License-Expression: Apache-2.0" in metadata
    for extra in ("bench", "cu12", "cu13", "cupy", "docs", "test", "torch"):
        assert f"Provides-Extra: {extra}" in metadata
    assert "Requires-Dist: numba-cuda[cu13]; extra == 'cu13'" in metadata


def python(code: str, **variables: str) -> str:
    """Run code in a fresh interpreter where a warning is an error; return what it prints."""
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=True).stdout


def test_import_adds_little_to_that_of_numba():
    # Processor time, bytecode kept: a user's second import on a machine that does other work too. No garbage
    # collection: the one that Numba's objects make due falls into either import.
    code = (
        "import gc, numba.cuda, time; gc.disable(); start = time.process_time(); import devmath\n"
        "print(time.process_time() - start)"
    )
    assert min(float(python(code, PYTHONDONTWRITEBYTECODE="")) for _ in range(3)) < 0.050


@pytest.mark.parametrize("simulated", ["0", "1"])
def test_import_loads_no_array_package_and_no_driver(simulated):
    code = (
        "import sys, numba.cuda; before = set(sys.modules); import devmath\n"
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before})"
    )
    added = set(python(code, NUMBA_ENABLE_CUDASIM=simulated, CUDA_VISIBLE_DEVICES="-1").split())
    assert "devmath" in added
    assert not added & {"cuda", "cupy", "torch", "scipy", "matplotlib"}


def test_compiling_parts_load_without_cuda_core():
    code = (
        "import sys, types; package = types.ModuleType('devmath'); package.__path__ = [sys.argv[1]]\n"
        "sys.modules['devmath'] = package; import devmath.lto.compile\n"
        "print(*{name.partition('.')[0] for name in sys.modules} & {'cuda', 'numba'})"
    )
    command = [sys.executable, "-c", code, str(ROOT / "devmath")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() == []


def test_readme_has_two_complete_set_up_commands():
    commands = re.findall(r"^```sh\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert len(commands) == 2
    for command, job in zip(commands, ("devmath run examples/fft_convolution.py", "-m pytest"), strict=True):
        assert command.startswith("python3 -m venv .venv && .venv/bin/pip install -e ")
        assert command.count("\n") == 1
        assert job in command


@pytest.mark.parametrize("status", [0, 7])
def test_ci_runs_the_second_command_and_passes_its_status_on(tmp_path, status):
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    (tmp_path / "README.md").write_text(
        f"```sh\necho first\n```\n```python\n```\n```sh\npwd && exit {status}\n```\n```sh\necho third\n```\n"
    )
    result = subprocess.run([tmp_path / ".ci" / "run"], capture_output=True, text=True, check=False)
    assert result.returncode == status
    assert result.stdout.splitlines() == [f"+ pwd && exit {status}", str(tmp_path)]


def test_ci_fails_without_a_second_command(tmp_path):
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    (tmp_path / "README.md").write_text("```sh\necho first\n```\n")
    result = subprocess.run([tmp_path / ".ci" / "run"], capture_output=True, text=True, check=False)
    assert result.returncode != 0
    assert "README.md has no second set-up command" in result.stderr
