"""The disk cache of compiled units: a folder that any number of processes share.

cuda.core's program cache stores the entries: whole files moved into place, oldest reads evicted first. Here is what it
leaves open: where the folder lies, how large it may grow, entries damaged from outside, and a folder that cannot be
used, which costs speed and never a result.
"""

import functools
import hashlib
import logging
import os
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cuda.core.utils import FileStreamProgramCache

DEFAULT_LIMIT_BYTES = 256 * 1024**2

_DIGEST_BYTES = hashlib.sha256().digest_size

_logger = logging.getLogger("devmath")
_warned = threading.Event()


@dataclass(frozen=True)
class CacheInfo:
    """State of the disk cache.

    Parameters
    ----------
    folder : pathlib.Path
        Where it lies.
    entries : int
        Number of compiled units in it.
    size_bytes : int
        Bytes that they take.
    limit_bytes : int
        Bytes beyond which the entries read longest ago are removed.
    """

    folder: Path
    entries: int
    size_bytes: int
    limit_bytes: int


def folder() -> Path:
    """Folder of the cache: ``DEVMATH_CACHE_DIR``, else ``devmath`` in the user's cache folder. It need not exist.

    Raises
    ------
    OSError
        If the user has no home folder.
    """
    chosen = os.environ.get("DEVMATH_CACHE_DIR")
    return Path(chosen).absolute() if chosen else _user_cache_folder() / "devmath"


def limit_bytes() -> int:
    """Size bound of the cache: ``DEVMATH_CACHE_BYTES``, else 256 MiB.

    Raises
    ------
    ValueError
        If ``DEVMATH_CACHE_BYTES`` is no positive integer.
    """
    text = os.environ.get("DEVMATH_CACHE_BYTES") or str(DEFAULT_LIMIT_BYTES)
    if not (text.isdecimal() and int(text) > 0):
        raise ValueError(f"DEVMATH_CACHE_BYTES must be a positive integer, got {text!r}")
    return int(text)


def load(key: bytes) -> bytes | None:
    """Return the entry of `key`; None where there is none, or it is damaged."""
    try:
        # Without a bound the cache is opened without a scan of its files.
        entry = _open(_ltoir_folder(), None).get(key) or b""
    except OSError as error:
        _warn_once(error)
        return None
    digest, payload = entry[:_DIGEST_BYTES], entry[_DIGEST_BYTES:]
    return payload if hashlib.sha256(payload).digest() == digest else None


def store(key: bytes, payload: bytes) -> None:
    """Keep `payload` for later processes, where the folder allows it.

    Raises
    ------
    ValueError
        If ``DEVMATH_CACHE_BYTES`` is no positive integer.
    """
    limit = limit_bytes()
    try:
        _open(_ltoir_folder(), limit)[key] = hashlib.sha256(payload).digest() + payload
    except OSError as error:
        _warn_once(error)


def save_source(name: str, source: str) -> Path | None:
    """Save a text that does not compile, for its author to read; None where that cannot be done."""
    try:
        path = _rejected_folder() / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    except OSError:
        return None
    return path


def check_writable() -> None:
    """Make the folder and a file in it, for a moment.

    Raises
    ------
    OSError
        If that cannot be done.
    """
    _ltoir_folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=_ltoir_folder()):
        pass


def info() -> CacheInfo:
    """Count the entries and their bytes.

    Raises
    ------
    OSError
        If the folder cannot be read.
    ValueError
        If ``DEVMATH_CACHE_BYTES`` is no positive integer.
    """
    files = [path for path in _ltoir_folder().rglob("*") if path.is_file()]
    return CacheInfo(folder(), len(files), sum(path.stat().st_size for path in files), limit_bytes())


def clear() -> None:
    """Remove every compiled unit and every saved source.

    Raises
    ------
    OSError
        If the folder cannot be written.
    """
    _open(_ltoir_folder(), None).clear()
    for path in _rejected_folder().glob("*.cu"):
        path.unlink(missing_ok=True)


def _ltoir_folder() -> Path:
    return folder() / "ltoir"


def _rejected_folder() -> Path:
    return folder() / "rejected"


def _user_cache_folder() -> Path:
    """Where programs of this user keep caches: the conventions of Windows, macOS and freedesktop.org (XDG)."""
    try:
        home = Path.home()
    except RuntimeError as error:
        raise FileNotFoundError("this user has no home folder") from error
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    if sys.platform == "darwin":
        return home / "Library" / "Caches"
    chosen = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return chosen if chosen.is_absolute() else home / ".cache"  # XDG: a relative path is to be ignored


@functools.cache
def _open(path: Path, limit: int | None) -> "FileStreamProgramCache":
    from cuda.core.utils import FileStreamProgramCache

    return FileStreamProgramCache(path, max_size_bytes=limit)


def _warn_once(error: OSError) -> None:
    """Say that the disk cache is out of use: one line a process, however many units it compiles."""
    if not _warned.is_set():
        _warned.set()
        _logger.warning(
            "the disk cache cannot be used (%s); compiled units are kept in memory only. "
            "Set DEVMATH_CACHE_DIR to a folder that can be written",
            error,
        )
