"""Which tests can run in this process, and the one place where a missing GPU skips."""

import pytest
from numba import cuda
from numba.cuda.core import config

# Before anything imports it: the benchmarks do too, and their tests are in tests/cpu.
pytest.register_assert_rewrite("tests.gpu.device_arrays")

# Numba decides once a process whether kernels are compiled or simulated.
_SIMULATED = bool(config.ENABLE_CUDASIM)
collect_ignore = ["cpu", "compile", "gpu"] if _SIMULATED else ["sim"]


def pytest_report_header() -> str:
    """Say what is left to another run."""
    if _SIMULATED:
        return "devmath: simulator, tests/sim only (unset NUMBA_ENABLE_CUDASIM for the others)"
    return "devmath: no simulator, tests/sim left out (set NUMBA_ENABLE_CUDASIM=1 for them)"


@pytest.fixture(scope="session")
def gpu():
    """Return Numba's current device; skip where there is none."""
    if not cuda.is_available():
        pytest.skip("no GPU")
    return cuda.get_current_device()


@pytest.fixture(autouse=True)
def _gpu_where_marked(request):
    if request.node.get_closest_marker("gpu"):
        request.getfixturevalue("gpu")


@pytest.fixture
def cache_folder(tmp_path, monkeypatch):
    """Give the test a disk cache of its own, still empty."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("DEVMATH_CACHE_DIR", str(folder))
    return folder
