"""The code passes the linters that pyproject.toml sets up."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "command",
    [("ruff", "check"), ("ruff", "format", "--check", "devmath", "tests", "examples", "benchmarks"), ("mypy",)],
    ids=" ".join,
)
def test_linter_has_nothing_to_say(command):
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
