"""The planner's rules, its padding, and the twiddle tables."""

import math
import re

import numpy as np
import pytest

from devmath.lto.fft_plan import FFTPlan, legal_elements_per_thread, plan
from devmath.lto.fft_source import struct_text, twiddle_table

REALS = ("float", "double")
SIZES = {"float": [2**i for i in range(1, 15)], "double": [2**i for i in range(1, 14)]}
DEFAULTS = [plan(n, real) for real in REALS for n in SIZES[real]]
LEGAL = [plan(n, real, e) for real in REALS for n in SIZES[real] for e in legal_elements_per_thread(n, real)]

REAL_BYTES = {"float": 4, "double": 8}


def name(p):
    return f"{p.real}-{p.n}-{p.elements_per_thread}"


@pytest.mark.parametrize("p", LEGAL, ids=name)
def test_plan_keeps_its_bounds(p):
    data_registers = p.elements_per_thread * REAL_BYTES[p.real] // 2
    assert math.prod(p.radices) == p.n
    assert all(p.elements_per_thread % radix == 0 and radix > 1 for radix in p.radices)
    assert p.threads == p.n // p.elements_per_thread * p.ffts_per_block <= 1024
    assert p.threads * p.min_blocks <= 2048
    assert 65536 // (p.threads * p.min_blocks) >= max(64, 2 * data_registers)
    assert p.exchange_bytes * p.min_blocks <= 227 * 1024
    assert len(p.pads) == len(p.radices) - 1
    assert (p.exchange == "none") == (len(p.radices) == 1) == (p.exchange_bytes == 0)
    assert p.uses_block_barrier == (p.threads_per_fft > 32)


@pytest.mark.parametrize("p", DEFAULTS, ids=name)
def test_default_blocks_are_whole_warps(p):
    assert p.threads % 32 == 0
    assert 64 <= p.threads <= 512
    assert p.threads <= 256 or p.min_blocks == 1


@pytest.mark.parametrize(
    ("n", "real", "elements", "radices", "exchange", "ffts", "min_blocks"),
    [
        (64, "float", 8, (8, 8), "planar", 16, 8),
        (128, "float", 8, (8, 4, 4), "split", 8, 8),
        (256, "float", 8, (8, 8, 4), "split", 4, 8),
        (512, "float", 8, (8, 8, 8), "split", 1, 16),
        (1024, "float", 16, (16, 16, 4), "complex", 2, 8),
        (2048, "float", 16, (16, 16, 8), "complex", 1, 8),
        (4096, "float", 16, (16, 16, 16), "complex", 1, 4),
        (8192, "float", 32, (32, 16, 16), "complex", 1, 2),
        (16384, "float", 32, (32, 32, 16), "complex", 1, 1),
        (512, "double", 8, (8, 8, 8), "complex", 2, 6),
        (4096, "double", 16, (16, 16, 16), "complex", 1, 2),
        (8192, "double", 16, (16, 16, 8, 4), "complex", 1, 1),
    ],
)
def test_defaults_are_the_fastest_measured(n, real, elements, radices, exchange, ffts, min_blocks):
    p = plan(n, real)
    assert (p.elements_per_thread, p.radices, p.exchange) == (elements, radices, exchange)
    assert (p.ffts_per_block, p.min_blocks) == (ffts, min_blocks)


def exchange_accesses(p: FFTPlan):
    """Yield (exchange, element addresses of all threads of a block) of every shared-memory access, one component."""
    rank = np.arange(p.threads)
    f, t = rank // p.threads_per_fft, rank % p.threads_per_fft
    for s, (period, words) in enumerate(p.pads):
        length, radix = math.prod(p.radices[:s]), p.radices[s]

        def place(offset, period=period, words=words):
            return f * p.fft_stride + offset + (offset // period * words if words else 0)

        for b in range(p.elements_per_thread // radix):
            j = t + b * p.threads_per_fft
            for r in range(radix):
                yield s, place(j // length * length * radix + j % length + r * length)
        for i in range(p.elements_per_thread):
            yield s, place(t + i * p.threads_per_fft)


def wavefronts(addresses, access_bytes):
    """Count the shared-memory wavefronts of one access by a block, and the fewest there can be."""
    banks = 128 // access_bytes
    groups = [
        warp[first : first + banks]
        for warp in (addresses[w : w + 32] for w in range(0, len(addresses), 32))
        for first in range(0, len(warp), banks)
    ]
    return sum(np.bincount(group % banks).max() for group in groups), len(groups)


@pytest.mark.parametrize("p", [p for p in DEFAULTS if p.n <= 2048], ids=name)
def test_exchanges_of_defaults_have_no_bank_conflicts(p):
    access_bytes = REAL_BYTES[p.real] * (2 if p.exchange == "complex" else 1)
    for exchange, addresses in exchange_accesses(p):
        got, least = wavefronts(addresses, access_bytes)
        assert got == least, f"exchange {exchange}"


@pytest.mark.parametrize("p", [p for p in DEFAULTS if p.n <= 2048], ids=name)
def test_exchange_buffer_holds_every_element_once(p):
    written = {}
    for exchange, addresses in exchange_accesses(p):
        written.setdefault(exchange, []).append(addresses)
    for accesses in written.values():
        writes, reads = np.split(np.stack(accesses), 2)
        assert len(np.unique(writes)) == writes.size
        assert np.array_equal(np.sort(writes, axis=None), np.sort(reads, axis=None))
        assert writes.max() < p.ffts_per_block * p.fft_stride


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((100, "float"), "n must be a power of two in 2..16384, nearest 64 and 128, got 100"),
        ((1, "float"), "n must be a power of two in 2..16384, nearest 2, got 1"),
        ((16384, "double"), "n must be a power of two in 2..8192, nearest 8192, got 16384"),
        ((64, "half"), "real must be one of float, double, got half"),
        ((64, "double", 32), "elements_per_thread must be one of 2, 4, 8, 16 for n=64 in double, got 32"),
        ((64, "float", 0), "elements_per_thread must be one of 2, 4, 8, 16, 32 for n=64 in float, got 0"),
        ((4096, "float", 2), "elements_per_thread must be one of 4, 8, 16, 32 for n=4096 in float, got 2"),
        ((512, "float", 8, 17), "ffts_per_block must be in 1..16 for n=512, elements_per_thread=8, got 17"),
        ((512, "float", 8, 0), "ffts_per_block must be in 1..16 for n=512, elements_per_thread=8, got 0"),
    ],
)
def test_illegal_values_are_refused(arguments, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        plan(*arguments)


@pytest.mark.parametrize("p", LEGAL, ids=name)
def test_most_ffts_per_block_fit(p):
    """The range that the error names is legal to its end: registers, threads and shared memory suffice."""
    with pytest.raises(ValueError, match="ffts_per_block must be in") as error:
        plan(p.n, p.real, p.elements_per_thread, 1_000_000)
    most = plan(p.n, p.real, p.elements_per_thread, int(re.search(r"1\.\.(\d+)", str(error.value))[1]))
    assert most.threads <= 1024
    assert most.exchange_bytes <= 227 * 1024
    assert most.min_blocks == 1


@pytest.mark.parametrize("n", [0, -4, 3, 12])
def test_other_sizes_have_no_legal_elements(n):
    assert legal_elements_per_thread(n, "float") == ()


@pytest.mark.parametrize("p", [p for p in DEFAULTS if len(p.radices) > 1], ids=name)
def test_twiddles_are_rounded_once(p):
    """Each entry is within half a unit in the last place of exp(-2 pi i q / (length 2**(level+1)))."""
    table = twiddle_table(p)
    first = 0
    for s in range(1, len(p.radices)):
        length = math.prod(p.radices[:s])
        for level in range(int(math.log2(p.radices[s]))):
            q = np.arange(length, dtype=np.longdouble)
            angle = 2 * np.arccos(np.longdouble(-1)) * q / (length * 2 ** (level + 1))
            for part, exact in enumerate((np.cos(angle), -np.sin(angle))):
                entries = table[first : first + length, part]
                # Near zero the absolute error of the extended-precision reference counts, not the last place.
                assert (np.abs(entries - exact) <= 0.501 * np.abs(np.spacing(entries)) + 1e-18).all()
            first += length
    assert first == len(table)


def test_twiddle_table_is_named_by_its_content():
    def table_name(p):
        return struct_text(p).split("[]")[0].split()[-1]

    assert table_name(plan(512, "float", 8, 1)) == table_name(plan(512, "float", 8, 2))
    assert len({table_name(plan(512, "float", e)) for e in (4, 8, 16)} | {table_name(plan(512, "double"))}) == 4
