"""NVRTC and nvJitLink: present, and of versions that fit together."""

import pytest

from devmath.errors import ToolchainError
from devmath.lto import toolchain


@pytest.fixture(autouse=True)
def _check_anew():
    toolchain.check.cache_clear()
    yield
    toolchain.check.cache_clear()


def test_the_installed_libraries_fit():
    toolchain.check()
    assert (12, 0) <= toolchain.nvrtc_version() <= toolchain.nvjitlink_version()


@pytest.mark.parametrize(
    ("nvrtc", "nvjitlink"), [((13, 0), (13, 0)), ((13, 0), (13, 5)), ((12, 9), (12, 9)), ((13, 9), (13, 10))]
)
def test_versions_that_fit(monkeypatch, nvrtc, nvjitlink):
    monkeypatch.setattr(toolchain, "nvrtc_version", lambda: nvrtc)
    monkeypatch.setattr(toolchain, "nvjitlink_version", lambda: nvjitlink)
    toolchain.check()


@pytest.mark.parametrize(
    ("nvrtc", "nvjitlink"), [((13, 5), (13, 0)), ((13, 0), (12, 9)), ((12, 9), (13, 0)), ((13, 10), (13, 9))]
)
def test_versions_that_do_not_fit(monkeypatch, nvrtc, nvjitlink):
    monkeypatch.setattr(toolchain, "nvrtc_version", lambda: nvrtc)
    monkeypatch.setattr(toolchain, "nvjitlink_version", lambda: nvjitlink)
    with pytest.raises(ToolchainError) as raised:
        toolchain.check()
    message = str(raised.value)
    assert f"got nvJitLink {nvjitlink[0]}.{nvjitlink[1]} and NVRTC {nvrtc[0]}.{nvrtc[1]}" in message
    assert f"pip install --upgrade 'devmath[cu{nvrtc[0]}]'" in message


@pytest.mark.parametrize(
    ("library", "module", "function"), [("NVRTC", "nvrtc", "nvrtcVersion"), ("nvJitLink", "nvjitlink", "version")]
)
def test_a_missing_library_names_the_extra(monkeypatch, library, module, function):
    from cuda import bindings
    from cuda.pathfinder import DynamicLibNotFoundError

    def missing():
        raise DynamicLibNotFoundError("Failure finding the library: no such file\n  a second line")

    __import__(f"cuda.bindings.{module}")
    monkeypatch.setattr(getattr(bindings, module), function, missing)
    with pytest.raises(ToolchainError) as raised:
        toolchain.check()
    assert str(raised.value).startswith(f"{library} cannot be loaded (Failure finding the library: no such file)")
    assert "pip install 'devmath[cu13]'" in str(raised.value)
