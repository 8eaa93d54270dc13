"""What a GEMM variant is asked, and what it decides: threads, tile layouts, register fragment, template arguments."""

import math
from dataclasses import dataclass

from ..dtypes import DType
from ..fragments import Digits, FragmentMap
from ..layouts import CHUNK_BYTES, TileLayout, round_up

WARP = 32
REGISTERS_OF_BLOCK = 65536  # 32-bit registers of one SM, sm_80 and later: what the threads of a block share
MAX_REGISTERS = 255  # that one thread can address
MAX_ACCUMULATOR_WORDS = 128  # of these
MIN_OTHER_REGISTERS = 40  # addresses, counters, and the least that feeds the multiplies


@dataclass(frozen=True)
class GemmProblem:
    """A product as variants see it: the fields of a descriptor that a plan depends on.

    Parameters
    ----------
    m, n, k : int
        Extents in elements: A is (m, k), B is (k, n), C is (m, n).
    a, b, c : DType
        Element types of the matrices.
    accumulator : DType
        Type of the sums, of alpha and of beta.
    orders : tuple of {"row", "col"}
        Those of A, B and C.
    threads : int or None
        Threads that share a product; None leaves the number to the variant.
    math : {"ieee", "tf32", "3xtf32"}
        How float32 is multiplied.
    conj : tuple of bool
        Whether A, and B, is conjugated.
    gemms_per_block : int
        Products that a block computes side by side, each by `threads` of its own.
    """

    m: int
    n: int
    k: int
    a: DType
    b: DType
    c: DType
    accumulator: DType
    orders: tuple[str, str, str]
    threads: int | None = None
    math: str = "ieee"
    conj: tuple[bool, bool] = (False, False)
    gemms_per_block: int = 1

    @property
    def words_each(self) -> int:
        """32-bit registers that one accumulator takes."""
        return accumulator_words(self.accumulator)

    def block_threads(self, threads: int) -> int:
        """Threads of a block, which share its registers, where `threads` share a product."""
        return threads * self.gemms_per_block


@dataclass(frozen=True)
class GemmPlan:
    """One specialisation of a block GEMM.

    Parameters
    ----------
    problem : GemmProblem
        What it multiplies.
    variant : str
        Name of the variant that made the plan.
    header : str
        Its CUDA C++ header, as one writes it in an ``#include``.
    threads : int
        Threads that share a product: a multiple of 32, or a power of two below.
    a, b, c : TileLayout
        Shared-memory tiles.
    fragment : FragmentMap
        Elements of C that a thread's accumulators hold.
    template : str
        C++ type of the variant's block, in terms of a type named ``Fragment``.
    prelude : str, optional
        What a unit declares after the header.
    """

    problem: GemmProblem
    variant: str
    header: str
    threads: int
    a: TileLayout
    b: TileLayout
    c: TileLayout
    fragment: FragmentMap
    template: str
    prelude: str = ""

    @property
    def accumulator(self) -> DType:
        """Type of the sums, of alpha and of beta."""
        return self.problem.accumulator

    def plain(self, name: str) -> TileLayout:
        """Matrix "a", "b" or "c" as a dense array of the user's own, in the problem's order whatever a tile's is."""
        tile, order = getattr(self, name), self.problem.orders["abc".index(name)]
        lines, length = (tile.rows, tile.cols) if order == "row" else (tile.cols, tile.rows)
        return TileLayout(tile.dtype, tile.rows, tile.cols, order, length, lines)

    @property
    def register_form_problem(self) -> str | None:
        """Why the accumulators of a thread do not fit its registers, as a sentence; None where they do."""
        words_each, m, n = self.problem.words_each, self.problem.m, self.problem.n
        words = self.fragment.size * words_each
        limit = max_accumulator_words(self.problem.block_threads(self.threads), words_each)
        if words <= limit:
            return None
        if self.threads < WARP or self.problem.gemms_per_block > 1:
            return (
                f"the accumulator of a thread must be at most {limit} 32-bit words, got {words} for {m} x {n} "
                f"{self.accumulator.name} with {self.threads} threads a product: take execution='block', or a smaller "
                f"m or n"
            )
        block_words = m * n * words_each
        others = (count for count in (32, 64, 128, 256) if count != self.threads)
        enough = (count for count in others if block_words <= count * max_accumulator_words(count, words_each))
        advice = next((f"{count} threads hold it" for count in enough), "take a smaller m or n")
        return (
            f"the accumulator of a thread must be at most {limit} 32-bit words with {self.threads} threads, "
            f"got {words} for {m} x {n} {self.accumulator.name}: {advice}"
        )


def accumulator_words(accumulator: DType) -> int:
    """32-bit registers that one accumulator takes; one of 16 bits takes a whole one too, where it is added to."""
    return max(accumulator.itemsize // 4, 1)


def registers_of_thread(threads: int) -> int:
    """32-bit registers that each of so many threads can have."""
    return min(MAX_REGISTERS, REGISTERS_OF_BLOCK // threads)


def max_accumulator_words(threads: int, words_each: int) -> int:
    """32-bit words of accumulators that each of so many threads can hold without spilling.

    About half of its registers; three eighths where those are scarce and each sum takes several words, as what is
    multiplied then does too (64 words spill in 128 registers of float64 or complex64, 48 do not).
    """
    registers = registers_of_thread(threads)
    scarce = words_each > 1 and registers < MAX_REGISTERS
    share = 3 * registers // 8 if scarce else (registers + 1) // 2
    return min(MAX_ACCUMULATOR_WORDS, share, registers - MIN_OTHER_REGISTERS)


def default_threads(m: int, n: int, words_per_output: int, words_per_thread: int) -> int:
    """Threads for an m x n tile: a power of two from 32 to 512.

    ``2 sqrt(m n)`` balances reuse of operands in registers, which wants few threads with many outputs each, against
    latency, which wants many: 64 for 32x32, 128 for 64x64, 256 for 128x128. More where a thread would otherwise have
    more than `words_per_thread` words of accumulators; half as many where those can hold C and the more cannot.
    """
    balanced = 1 << int(math.log2(2 * math.sqrt(m * n)))
    words = m * n * words_per_output
    needed = 1 << (math.ceil(words / words_per_thread) - 1).bit_length()
    most = min(max(balanced, needed, WARP), 512)
    holders = (t for t in (most, most // 2) if words <= t * max_accumulator_words(t, words_per_output))
    return next(holders, most)


def warp_grids(threads: int) -> list[tuple[int, int]]:
    """All (rows, columns) of warps that use every warp; of the one where there are fewer threads than a warp has."""
    warps = max(threads // WARP, 1)
    return [(rows, warps // rows) for rows in range(1, warps + 1) if warps % rows == 0]


def digits(*terms: tuple[int, int, int]) -> Digits:
    """Digits of (divisor, modulus, stride), without those that are always 0."""
    return Digits(tuple(term for term in terms if term[1] > 1))


def padded_layout(
    dtype: DType, rows: int, cols: int, order: str, reach: tuple[int, int], unit_bytes: int = CHUNK_BYTES
) -> TileLayout:
    """Tile whose lines are an odd number of units long, so that eight of them start in different banks.

    `reach` is the (rows, columns) extent that instructions read, at least the tile; the surplus is set aside.
    """
    unit = unit_bytes // dtype.itemsize
    units = -(-(cols if order == "row" else rows) // unit)
    return _with_reach(dtype, rows, cols, order, (units + 1 - units % 2) * unit, 0, reach)


def wide_c_layout(dtype: DType, m: int, n: int, order: str) -> TileLayout:
    """C of 32 bits or more, of which lanes of tensor cores write neighbours of a row.

    A quarter of a warp writes 32 bytes of each of two rows, half of one 4: odd multiples of 32 keep those apart.
    """
    return padded_layout(dtype, m, n, order, (m, n), unit_bytes=32)


def dense_layout(dtype: DType, rows: int, cols: int, order: str, reach: tuple[int, int]) -> TileLayout:
    """Tile whose lines follow each other without a gap, but for the end of the last 16 bytes of each."""
    unit = CHUNK_BYTES // dtype.itemsize
    line = cols if order == "row" else rows
    return _with_reach(dtype, rows, cols, order, round_up(line, unit), 0, reach)


def swizzled_layout(dtype: DType, rows: int, cols: int, order: str, reach: tuple[int, int]) -> TileLayout:
    """Tile with the widest swizzle that its lines are a multiple of; padded where they are a multiple of none."""
    line = cols if order == "row" else rows
    for swizzle in (8, 4, 2):
        if line * dtype.itemsize % (swizzle * CHUNK_BYTES) == 0:
            return _with_reach(dtype, rows, cols, order, line, swizzle, reach)
    return padded_layout(dtype, rows, cols, order, reach)


def _with_reach(
    dtype: DType, rows: int, cols: int, order: str, ld: int, swizzle: int, reach: tuple[int, int]
) -> TileLayout:
    lines, positions = reach if order == "row" else reach[::-1]
    # Whole accesses: a chunk, or a group of chunks that the swizzle permutes.
    access = max(swizzle, 1) * CHUNK_BYTES // dtype.itemsize
    elements = (lines - 1) * ld + round_up(positions, access)
    return TileLayout(dtype, rows, cols, order, ld, -(-elements // ld), swizzle)
