"""Rules of a kernel as a whole: its block, and its shared memory."""

import math

from ..blas_device import Gemm
from ..errors import LaunchError
from ..fft_device import FFT
from ..lto.arch import shared_memory_limit_bytes
from .rules import TypingError


def launch_bounds(desc: Gemm | FFT, arch: str | None) -> tuple[int, int]:
    """Threads a block on a target, and blocks that a multiprocessor shall hold at least."""
    return desc.launch_bounds_on(arch) if isinstance(desc, Gemm) else desc.launch_bounds


def agree_on_threads(
    first: Gemm | FFT, other: Gemm | FFT, error: type[Exception] = TypingError, arch: str | None = None
) -> None:
    """Refuse two descriptors that are made for blocks of different sizes."""
    threads, others = launch_bounds(first, arch)[0], launch_bounds(other, arch)[0]
    if threads != others:
        raise error(
            f"descriptors of one kernel must agree on the threads of a block, got {threads} for {first!r} and"
            f" {others} for {other!r}: set threads=, gemms_per_block= or ffts_per_block="
        )


def block_of(desc: Gemm | FFT, block_dim: tuple[int, ...], arch: str | None = None) -> None:
    """Refuse a block that has not exactly the threads of a descriptor."""
    threads, wanted = math.prod(block_dim), launch_bounds(desc, arch)[0]
    if threads != wanted:
        raise LaunchError(
            f"the block must have {wanted} threads (block_dim of {desc!r}), got {threads} from block {block_dim}"
        )


def shared_memory(used_bytes: int, arch: str) -> None:
    """Refuse more shared memory than a block may have on `arch`."""
    limit = shared_memory_limit_bytes(arch)
    if used_bytes > limit:
        raise TypingError(
            f"the tiles of a kernel must fit the {limit} bytes of shared memory that {arch} has, got {used_bytes}"
        )
