"""Unit -> LTO-IR: from memory, else from the disk cache, else from NVRTC."""

import functools
import hashlib
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import CompileError
from . import cache, toolchain
from .unit import Unit

if TYPE_CHECKING:
    from cuda.core import ProgramOptions

INCLUDE_FOLDER = Path(__file__).with_name("include")

_compiled: dict[tuple[Unit, str], bytes] = {}
# One lock, not one a unit: Numba holds a global lock of its own while it compiles, so nothing runs in parallel here.
_lock = threading.Lock()


def compile_ltoir(unit: Unit, arch: str) -> bytes:
    """Compile a unit for one target; the same bytes object comes back for the same arguments.

    Parameters
    ----------
    unit : Unit
        What to compile. It includes our headers as ``<devmath/...>``.
    arch : str
        Target, for example "sm_90a"; LTO-IR of one target does not link for another.

    Raises
    ------
    CompileError
        If NVRTC refuses the text.
    ToolchainError
        If NVRTC or nvJitLink is missing, or they do not fit together.
    """
    with _lock:
        if (unit, arch) not in _compiled:
            _compiled[unit, arch] = _from_disk_or_nvrtc(unit, arch)
        return _compiled[unit, arch]


def run_nvrtc(unit: Unit, arch: str) -> bytes:
    """Compile a unit for one target with no cache at all.

    Raises
    ------
    CompileError
        If NVRTC refuses the text.
    """
    from cuda.core import Program
    from cuda.core._utils.cuda_utils import NVRTCError

    try:
        return bytes(Program(unit.source, "c++", options=_options(unit, arch)).compile("ltoir").code)
    except NVRTCError as error:
        saved = cache.save_source(f"{unit.symbol}_{arch}.cu", unit.source)
        raise CompileError(unit.symbol, arch, str(error), unit.source, saved) from None  # the log says it all


def _from_disk_or_nvrtc(unit: Unit, arch: str) -> bytes:
    toolchain.check()
    key = _cache_key(unit, arch)
    ltoir = cache.load(key)
    if ltoir is None:
        ltoir = run_nvrtc(unit, arch)
        cache.store(key, ltoir)
    return ltoir


def _options(unit: Unit, arch: str) -> "ProgramOptions":
    from cuda.core import ProgramOptions

    return ProgramOptions(
        name=unit.symbol,  # the file name in the compiler's log
        arch=arch,
        std="c++17",
        include_path=str(INCLUDE_FOLDER),
        relocatable_device_code=True,
        link_time_optimization=True,
    )


def _cache_key(unit: Unit, arch: str) -> bytes:
    """Digest of everything the result depends on: text, headers, options, NVRTC version."""
    from cuda.core.utils import make_program_cache_key

    return make_program_cache_key(
        code=unit.source,
        code_type="c++",
        options=_options(unit, arch),
        target_type="ltoir",
        extra_digest=_headers_digest(),
    )


@functools.cache
def _headers_digest() -> bytes:
    """Digest of the names and the content of all our headers."""
    digest = hashlib.sha256()
    for path in sorted(INCLUDE_FOLDER.rglob("*.cuh")):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(INCLUDE_FOLDER).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.digest()
