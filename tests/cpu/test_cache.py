"""The disk cache: where it lies, what it survives, how large it grows."""

import hashlib
import logging
import multiprocessing
import os
import threading
from pathlib import Path

import pytest

from devmath.lto import cache
from devmath.lto import compile as compiling
from devmath.lto.unit import Unit


@pytest.fixture
def unusable_folder(tmp_path, monkeypatch):
    """Point the cache below a regular file, where not even root can make a folder; nothing was logged yet."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DEVMATH_CACHE_DIR", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(cache, "_warned", threading.Event())


def test_an_entry_comes_back(cache_folder):
    assert cache.load(b"key") is None
    cache.store(b"key", b"payload")
    assert cache.load(b"key") == b"payload"
    assert cache.load(b"other") is None


@pytest.mark.parametrize(
    "content",
    [b"", b"payload", bytes(39), hashlib.sha256(b"payload").digest() + b"pay"],
    ids=["empty", "bare", "wrong digest", "cut"],
)
def test_a_damaged_entry_is_none(cache_folder, content):
    cache.store(b"key", b"payload")
    (entry,) = (path for path in cache_folder.rglob("*") if path.is_file())
    entry.write_bytes(content)
    assert cache.load(b"key") is None
    cache.store(b"key", b"payload")
    assert cache.load(b"key") == b"payload"


def test_a_deleted_folder_is_made_again(cache_folder):
    cache.store(b"key", b"payload")
    for path in sorted(cache_folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    assert cache.load(b"key") is None
    cache.store(b"key", b"payload")
    assert cache.load(b"key") == b"payload"


@pytest.mark.usefixtures("unusable_folder")
def test_an_unusable_folder_is_said_once(caplog):
    for key in (b"one", b"two"):
        cache.store(key, b"payload")
        assert cache.load(key) is None
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("devmath", logging.WARNING)
    assert "the disk cache cannot be used" in record.message
    assert "DEVMATH_CACHE_DIR" in record.message
    with pytest.raises(OSError, match="Not a directory"):
        cache.check_writable()


def test_a_read_only_folder_still_serves(cache_folder, monkeypatch, caplog):
    from cuda.core.utils import FileStreamProgramCache

    def refuse(self, key, value):
        raise PermissionError(13, "Permission denied")

    cache.store(b"key", b"payload")
    monkeypatch.setattr(cache, "_warned", threading.Event())
    monkeypatch.setattr(FileStreamProgramCache, "__setitem__", refuse)
    for _ in range(2):
        cache.store(b"new", b"payload")
    assert cache.load(b"key") == b"payload"
    assert [record.message[:45] for record in caplog.records] == ["the disk cache cannot be used ([Errno 13] Per"]


def test_info_and_clear(cache_folder):
    assert cache.info() == cache.CacheInfo(cache_folder, 0, 0, 256 * 1024**2)
    cache.store(b"key", b"payload")
    saved = cache.save_source("bad.cu", "text")
    assert saved.read_text() == "text"
    assert cache.info() == cache.CacheInfo(cache_folder, 1, 32 + len(b"payload"), 256 * 1024**2)
    cache.clear()
    assert cache.info().entries == 0
    assert not saved.exists()


def test_the_size_bound_keeps_what_was_read_last(cache_folder, monkeypatch):
    monkeypatch.setenv("DEVMATH_CACHE_BYTES", "4000")
    payloads = {bytes([i]): bytes([i]) * 1000 for i in range(8)}
    for key, payload in payloads.items():
        cache.store(key, payload)
        cache.load(bytes([0]))
    assert cache.info().size_bytes <= 4000
    assert cache.load(bytes([0])) == payloads[bytes([0])]
    assert cache.load(bytes([7])) == payloads[bytes([7])]
    assert cache.load(bytes([1])) is None


@pytest.mark.parametrize("text", ["0", "-1", "1e9", "256M"])
def test_the_size_bound_must_be_a_positive_integer(cache_folder, monkeypatch, text):
    monkeypatch.setenv("DEVMATH_CACHE_BYTES", text)
    with pytest.raises(ValueError, match=f"DEVMATH_CACHE_BYTES must be a positive integer, got '{text}'"):
        cache.store(b"key", b"payload")


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"DEVMATH_CACHE_DIR": "/chosen"}, "/chosen"),
        ("linux", {"XDG_CACHE_HOME": "/xdg"}, "/xdg/devmath"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, "/home/me/.cache/devmath"),
        ("linux", {"DEVMATH_CACHE_DIR": ""}, "/home/me/.cache/devmath"),
        ("darwin", {}, "/home/me/Library/Caches/devmath"),
        ("win32", {}, "/home/me/AppData/Local/devmath"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/devmath"),
    ],
)
def test_folder(monkeypatch, platform, variables, expected):
    for name in ("DEVMATH_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(cache.sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: Path("/home/me"))
    assert cache.folder() == Path(expected)


def test_a_user_without_a_home_is_served_from_memory(monkeypatch, caplog):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("DEVMATH_CACHE_DIR", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    monkeypatch.setattr(cache, "_warned", threading.Event())
    cache.store(b"key", b"payload")
    assert cache.load(b"key") is None
    assert "this user has no home folder" in caplog.text


UNITS = [
    Unit.render("race", lambda symbol, i=i: f'extern "C" __device__ void {symbol}(float* x) {{ *x += {i}; }}')
    for i in range(3)
]


def compile_in_rounds(folders, barrier, results):
    """Compile the same units as every other process at the same moment, on an empty folder each round."""
    for folder in folders:
        os.environ["DEVMATH_CACHE_DIR"] = folder
        compiling._compiled.clear()
        barrier.wait(timeout=60)
        results.put([hashlib.sha256(compiling.compile_ltoir(unit, "sm_80")).digest() for unit in UNITS])


def test_processes_that_race_all_get_the_right_units(tmp_path, monkeypatch):
    processes, folders = 4, [str(tmp_path / str(i)) for i in range(3)]
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(processes), context.Queue()
    workers = [
        context.Process(target=compile_in_rounds, args=(folders, barrier, results), daemon=True)
        for _ in range(processes)
    ]
    for worker in workers:
        worker.start()
    digests = [results.get(timeout=120) for _ in range(processes * len(folders))]
    for worker in workers:
        worker.join(timeout=60)
    assert [worker.exitcode for worker in workers] == [0] * processes
    expected = [hashlib.sha256(compiling.run_nvrtc(unit, "sm_80")).digest() for unit in UNITS]
    assert all(digest == expected for digest in digests)
    for folder in folders:
        monkeypatch.setenv("DEVMATH_CACHE_DIR", folder)
        assert cache.info().entries == len(UNITS)
