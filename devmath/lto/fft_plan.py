"""How a transform is computed: elements and threads, radices, exchange, padding, and the launch bounds that follow.

The defaults, and the rules that give them, are the fastest of 554 configurations measured on an H200. Everything here
is arithmetic on the descriptor: no compiler, no GPU.
"""

import itertools
import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

Pad = tuple[int, int]

_WARP = 32
_WAVEFRONT_BYTES = 128  # of shared memory: 32 banks of 4 bytes
_REGISTERS = 65536  # of a multiprocessor; at 64 a thread or more they also keep a block within 1024 threads
_MAX_BLOCKS = 32  # resident on a multiprocessor
_MAX_EXCHANGE_BYTES = 227 * 1024  # shared memory of a block, sm_90 and sm_100

_REAL_BYTES = {"float": 4, "double": 8}

# Registers of a thread by its elements, enough for two transforms with a filter between them to run without spilling.
# Data take 2 (float) or 4 (double) an element; aligned groups of four for 16-byte accesses cost double some more.
_THREAD_REGISTERS = {
    "float": {2: 64, 4: 64, 8: 64, 16: 64, 32: 128},
    "double": {2: 64, 4: 64, 8: 80, 16: 128},
}

# Small sizes: enough threads for the lanes of a transform to fill a 32-byte sector. Larger: measured.
_DEFAULT_ELEMENTS = {
    "float": {2: 2, 4: 2, 8: 2, 16: 4, 32: 4, 64: 8, 128: 8, 256: 8, 512: 8,
              1024: 16, 2048: 16, 4096: 16, 8192: 32, 16384: 32},
    "double": {2: 2, 4: 2, 8: 4, 16: 4, 32: 8, 64: 8, 128: 8, 256: 8, 512: 8,
               1024: 16, 2048: 16, 4096: 16, 8192: 16},
}  # fmt: skip


@dataclass(frozen=True)
class FFTPlan:
    """One way to compute an `n`-point complex transform in a thread block.

    Parameters
    ----------
    n : int
        Points of a transform.
    real : str
        C++ name of the real type, ``"float"`` or ``"double"``.
    elements_per_thread : int
        Thread t of a transform holds x[t + i * threads_per_fft], i = 0 .. elements_per_thread-1, before and after.
    radices : tuple of int
        Of the stages, first to last; their product is `n` and each divides `elements_per_thread`.
    exchange : str
        What shared memory holds between two stages: ``"complex"`` values, ``"planar"`` real and imaginary planes,
        ``"split"`` one plane used twice, or ``"none"`` where one thread does it all.
    pads : tuple of (int, int)
        For each exchange (period, words): `words` elements are left out after every `period`. (0, 0): no padding.
    fft_stride : int
        Elements between two transforms in the exchange buffer.
    ffts_per_block : int
        Transforms a block computes side by side.
    min_blocks : int
        Second launch bound, blocks a multiprocessor: it caps the registers at 65536 / (threads * min_blocks).
    """

    n: int
    real: str
    elements_per_thread: int
    radices: tuple[int, ...]
    exchange: str
    pads: tuple[Pad, ...]
    fft_stride: int
    ffts_per_block: int
    min_blocks: int

    @property
    def threads_per_fft(self) -> int:
        """Threads that share a transform."""
        return self.n // self.elements_per_thread

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.threads_per_fft * self.ffts_per_block

    @property
    def exchange_bytes(self) -> int:
        """Shared memory of the exchange buffer of a block."""
        return self.ffts_per_block * self.fft_stride * _stored_bytes(self.real, self.exchange)

    @property
    def uses_block_barrier(self) -> bool:
        """Whether a transform spans warps, so that its exchanges are ``__syncthreads`` barriers."""
        return self.threads_per_fft > _WARP


@cache
def plan(n: int, real: str, elements_per_thread: int | None = None, ffts_per_block: int | None = None) -> FFTPlan:
    """Return the plan of an `n`-point transform.

    Parameters
    ----------
    n : int
        Points, a power of two: 2 .. 16384 in float, 2 .. 8192 in double.
    real : str
        ``"float"`` or ``"double"``.
    elements_per_thread, ffts_per_block : int, optional
        The caller's choice; the default is the fastest measured.

    Raises
    ------
    ValueError
        If an argument is none of its legal values; the message names the nearest of them.
    """
    elements = _checked_elements(n, real, elements_per_thread)
    radices = _radices(n, elements)
    exchange = _exchange(n, real, elements)
    pads, fft_stride = _padding(n, real, elements, radices, exchange)
    threads_per_fft, fft_bytes = n // elements, fft_stride * _stored_bytes(real, exchange)
    registers = _THREAD_REGISTERS[real][elements]

    most = _groups_that_fit(threads_per_fft, registers, fft_bytes)
    ffts = _default_ffts(threads_per_fft, exchange, most) if ffts_per_block is None else ffts_per_block
    if not 1 <= ffts <= most:
        raise ValueError(f"ffts_per_block must be in 1..{most} for n={n}, elements_per_thread={elements}, got {ffts}")
    return FFTPlan(
        n=n,
        real=real,
        elements_per_thread=elements,
        radices=radices,
        exchange=exchange,
        pads=pads,
        fft_stride=fft_stride,
        ffts_per_block=ffts,
        min_blocks=min(_MAX_BLOCKS, _groups_that_fit(threads_per_fft * ffts, registers, ffts * fft_bytes)),
    )


def legal_elements_per_thread(n: int, real: str) -> tuple[int, ...]:
    """Return every legal `elements_per_thread` of an `n`-point transform; none where `n` is no legal size."""
    if n < 2 or n & (n - 1):
        return ()
    needed = _THREAD_REGISTERS[real].items()
    return tuple(elements for elements, registers in needed if elements <= n <= _REGISTERS // registers * elements)


def _checked_elements(n: int, real: str, elements_per_thread: int | None) -> int:
    if real not in _REAL_BYTES:
        raise ValueError(f"real must be one of {', '.join(_REAL_BYTES)}, got {real}")
    sizes = tuple(_DEFAULT_ELEMENTS[real])
    if n not in sizes:
        raise ValueError(f"n must be a power of two in 2..{sizes[-1]}, {_nearest(n, sizes)}, got {n}")
    if elements_per_thread is None:
        return _DEFAULT_ELEMENTS[real][n]
    legal = legal_elements_per_thread(n, real)
    if elements_per_thread not in legal:
        names = ", ".join(map(str, legal))
        raise ValueError(f"elements_per_thread must be one of {names} for n={n} in {real}, got {elements_per_thread}")
    return elements_per_thread


def _nearest(value: int, legal: tuple[int, ...]) -> str:
    """Name the legal values on both sides of `value`."""
    around = [x for x in legal if x <= value][-1:] + [x for x in legal if x > value][:1]
    return f"nearest {' and '.join(map(str, around))}"


def _groups_that_fit(threads: int, registers: int, smem_bytes: int) -> int:
    """Count the groups of `threads` threads that a multiprocessor has registers and shared memory for."""
    by_registers = _REGISTERS // (threads * registers)
    return min(by_registers, _MAX_EXCHANGE_BYTES // smem_bytes) if smem_bytes else by_registers


def _default_ffts(threads_per_fft: int, exchange: str, most: int) -> int:
    """Fill blocks of 128 threads, but keep transforms of several warps apart in a split exchange.

    Its three barriers would make them wait for each other (512 points: 3760 GB/s for two a block, 4224 for one).
    """
    if exchange == "split" and threads_per_fft > _WARP:
        return 1
    return min(most, max(1, 128 // threads_per_fft))


def _radices(n: int, elements: int) -> tuple[int, ...]:
    """Split `n` into the fewest stages, large radices first; radix 32 only where it saves a stage."""
    bits, most = n.bit_length() - 1, elements.bit_length() - 1
    stages = math.ceil(bits / most)
    usual = min(most, 4)
    larger = max(0, bits - stages * usual)
    exponents = [usual + 1] * larger
    while bits > sum(exponents):
        exponents.append(min(usual, bits - sum(exponents)))
    if exponents[-1] == 1 and len(exponents) > 1 and exponents[-2] > 2:  # 8 x 4 x 4 beats 8 x 8 x 2
        exponents[-2:] = [exponents[-2] - 1, 2]
    return tuple(1 << e for e in exponents)


def _exchange(n: int, real: str, elements: int) -> str:
    """Small float transforms are bound by shared memory; others by instructions, fewest in a complex exchange."""
    if n == elements:
        return "none"
    if real == "double" or elements > 8 or n > 512:
        return "complex"
    return "planar" if n <= 64 else "split"


def _stored_bytes(real: str, exchange: str) -> int:
    """Bytes of the exchange buffer that an element takes."""
    values = {"none": 0, "complex": 2, "planar": 2, "split": 1}
    return _REAL_BYTES[real] * values[exchange]


def _padding(n: int, real: str, elements: int, radices: tuple[int, ...], exchange: str) -> tuple[tuple[Pad, ...], int]:
    """Return the padding of each exchange and the stride between transforms that give the fewest bank conflicts.

    The lanes of one warp and one access of each kind stand for all: others differ by a constant offset (exchange.cuh).
    Below 32 threads several transforms share a warp: then their stride modulo the banks matters too.
    """
    if exchange == "none":
        return (), 0
    banks = _WAVEFRONT_BYTES // (_REAL_BYTES[real] * (2 if exchange == "complex" else 1))
    threads_per_fft = n // elements
    residues = range(banks if threads_per_fft < _WARP else 1)
    _, stride, pads = min(_padding_at(residue, n, threads_per_fft, radices, banks) for residue in residues)
    return pads, stride


def _padding_at(
    residue: int, n: int, threads_per_fft: int, radices: tuple[int, ...], banks: int
) -> tuple[int, int, tuple[Pad, ...]]:
    """Return (wavefronts, stride, pads) of the best padding for a stride that is `residue` modulo the banks."""
    transform, t = np.divmod(np.arange(_WARP), threads_per_fft)
    wavefronts, extent, pads = 0, n, []
    length = 1
    for radix in radices[:-1]:
        write, read = t // length * length * radix + t % length, t
        cost, pad_extent, pad = min(
            (
                sum(_wavefronts(_padded(x, pad) + transform * residue, banks) for x in (write, read)),
                _extent(n, pad),
                pad,
            )
            for pad in _candidate_pads(n, banks)
        )
        wavefronts += cost
        extent = max(extent, pad_extent)
        pads.append(pad)
        length *= radix
    return wavefronts, extent + (residue - extent) % banks, tuple(pads)


def _candidate_pads(n: int, banks: int) -> list[Pad]:
    """List no padding, and all paddings by powers of two that take at most a quarter more memory."""
    periods = [1 << i for i in range(1, n.bit_length() - 1)]
    words = [1 << i for i in range(banks.bit_length() - 1)]
    return [(0, 0)] + [pad for pad in itertools.product(periods, words) if 4 * _extent(n, pad) <= 5 * n]


def _extent(n: int, pad: Pad) -> int:
    """Elements that `n` padded elements take up."""
    period, words = pad
    return n + (n - 1) // period * words if words else n


def _padded(offset: NDArray[np.int64], pad: Pad) -> NDArray[np.int64]:
    """Where an element lies once `words` elements are left out after every `period`."""
    period, words = pad
    return offset + offset // period * words if words else offset


def _wavefronts(offset: NDArray[np.int64], banks: int) -> int:
    """Count the wavefronts of one access by a warp; as many lanes take part in each as there are banks."""
    groups = offset.reshape(-1, banks) % banks
    return int((groups[:, :, None] == np.arange(banks)).sum(axis=1).max(axis=1).sum())
