"""Units become LTO-IR: once by NVRTC, then from memory and from disk."""

import threading

import pytest

from devmath.errors import CompileError, ToolchainError
from devmath.lto import cache, toolchain
from devmath.lto import compile as compiling
from devmath.lto.arch import ARCHITECTURES
from devmath.lto.compile import INCLUDE_FOLDER, compile_ltoir
from devmath.lto.unit import Unit

pytestmark = pytest.mark.usefixtures("cache_folder")


@pytest.fixture
def nvrtc_runs(monkeypatch):
    """Start with an empty memory cache; return the list of (unit, arch) that reached NVRTC since."""
    runs, run_nvrtc = [], compiling.run_nvrtc

    def recorded(unit, arch):
        runs.append((unit, arch))
        return run_nvrtc(unit, arch)

    monkeypatch.setattr(compiling, "run_nvrtc", recorded)
    monkeypatch.setattr(compiling, "_compiled", {})
    return runs


def forget(monkeypatch):
    """Do to the memory cache what a new process would."""
    monkeypatch.setattr(compiling, "_compiled", {})


def unit_that_adds(number):
    """Return a unit that includes one of our headers."""
    return Unit.render(
        "add",
        lambda symbol: (
            f'#include <devmath/complex.cuh>\nextern "C" __device__ void {symbol}(float* x) {{ *x += {number}; }}\n'
        ),
    )


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_units_link_into_a_kernel_of_every_architecture(arch):
    from cuda.core import Linker, LinkerOptions, ObjectCode

    units = [unit_that_adds(1), unit_that_adds(2)]
    declarations = "".join(f'extern "C" __device__ void {unit.symbol}(float*);\n' for unit in units)
    calls = "".join(f"{unit.symbol}(x); " for unit in units)
    kernel = Unit("kernel", f'{declarations}extern "C" __global__ void kernel(float* x) {{ {calls}}}\n')
    objects = [ObjectCode.from_ltoir(compile_ltoir(unit, arch)) for unit in (kernel, *units)]
    linker = Linker(*objects, options=LinkerOptions(arch=arch, link_time_optimization=True))
    cubin = linker.link("cubin").code
    assert b"kernel" in cubin
    assert not any(unit.symbol.encode() in cubin for unit in units), "the units must be inlined"


def test_memory_returns_the_same_object(nvrtc_runs):
    assert compile_ltoir(unit_that_adds(1), "sm_80") is compile_ltoir(unit_that_adds(1), "sm_80")
    assert nvrtc_runs == [(unit_that_adds(1), "sm_80")]


def test_disk_serves_the_next_process(nvrtc_runs, monkeypatch):
    first = compile_ltoir(unit_that_adds(1), "sm_80")
    forget(monkeypatch)
    assert compile_ltoir(unit_that_adds(1), "sm_80") == first
    assert len(nvrtc_runs) == 1


def test_text_and_arch_are_compiled_apart(nvrtc_runs):
    results = {compile_ltoir(unit_that_adds(n), arch) for n in (1, 2) for arch in ("sm_80", "sm_90a")}
    assert len(results) == len(nvrtc_runs) == 4


def test_a_changed_header_is_compiled_anew(nvrtc_runs, monkeypatch, tmp_path):
    header = tmp_path / "include" / "devmath" / "complex.cuh"
    header.parent.mkdir(parents=True)
    monkeypatch.setattr(compiling, "INCLUDE_FOLDER", tmp_path / "include")
    for content in ("// one\n", "// two\n", "// one\n"):
        header.write_text(content)
        forget(monkeypatch)
        compiling._headers_digest.cache_clear()
        compile_ltoir(unit_that_adds(1), "sm_80")
    compiling._headers_digest.cache_clear()
    assert len(nvrtc_runs) == 2


def test_another_nvrtc_compiles_anew(nvrtc_runs, monkeypatch):
    from cuda.core.utils._program_cache import _keys

    compile_ltoir(unit_that_adds(1), "sm_80")
    forget(monkeypatch)
    monkeypatch.setattr(_keys, "_nvrtc_version", lambda: (13, 99))
    compile_ltoir(unit_that_adds(1), "sm_80")
    assert len(nvrtc_runs) == 2


@pytest.mark.parametrize("damaged", [slice(None, None, 2), slice(0, 100), slice(0), slice(None, None, -1)])
def test_a_damaged_entry_is_rebuilt(damaged, cache_folder, nvrtc_runs, monkeypatch, caplog):
    right = compile_ltoir(unit_that_adds(1), "sm_80")
    (entry,) = (path for path in cache_folder.rglob("*") if path.is_file())
    entry.write_bytes(entry.read_bytes()[damaged])
    for runs in (2, 2):  # rebuilt, then found
        forget(monkeypatch)
        assert compile_ltoir(unit_that_adds(1), "sm_80") == right
        assert len(nvrtc_runs) == runs
    assert not caplog.records


def test_threads_share_one_compilation(nvrtc_runs):
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(compile_ltoir(unit_that_adds(1), "sm_80"))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8
    assert len({id(ltoir) for ltoir in results}) == len(nvrtc_runs) == 1


def test_compile_error_tells_everything(cache_folder):
    unit = Unit.render("bad", lambda symbol: f'extern "C" __device__ void {symbol}() {{ undeclared(); }}\n')
    with pytest.raises(CompileError) as raised:
        compile_ltoir(unit, "sm_90a")
    error = raised.value
    assert (error.symbol, error.arch, error.source) == (unit.symbol, "sm_90a", unit.source)
    assert f'{unit.symbol}(1): error: identifier "undeclared" is undefined' in error.log
    assert error.source_path.parent.parent == cache_folder
    assert error.source_path.read_text() == unit.source
    assert str(error).startswith(f"{unit.symbol} does not compile for sm_90a (source saved as {error.source_path}):")


def test_compile_error_where_nothing_can_be_saved(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DEVMATH_CACHE_DIR", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(cache, "_warned", threading.Event())
    with pytest.raises(CompileError, match="source in the attribute 'source'") as raised:
        compile_ltoir(Unit("bad", "nonsense\n"), "sm_80")
    assert raised.value.source_path is None


def test_only_our_headers_are_on_the_include_path():
    with pytest.raises(CompileError, match="cuda/std/complex"):
        compile_ltoir(Unit("bad", "#include <cuda/std/complex>\n"), "sm_80")
    assert sorted(path.name for path in INCLUDE_FOLDER.iterdir()) == ["devmath"]


def test_a_broken_toolchain_is_said_before_compiling(nvrtc_runs, monkeypatch):
    def broken():
        raise ToolchainError("nvJitLink is too old")

    monkeypatch.setattr(toolchain, "check", broken)
    with pytest.raises(ToolchainError, match="nvJitLink is too old"):
        compile_ltoir(unit_that_adds(1), "sm_80")
    assert not nvrtc_runs
