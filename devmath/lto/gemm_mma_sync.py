"""Plans of the GEMM variant on tensor cores by mma.sync: float16 and bfloat16 operands, float32 sums."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product

from ..dtypes import DType
from ..fragments import FragmentMap
from ..layouts import TileLayout
from .gemm_plan import (
    MAX_ACCUMULATOR_WORDS,
    WARP,
    GemmPlan,
    default_threads,
    digits,
    max_accumulator_words,
    padded_layout,
    swizzled_layout,
    warp_grids,
)

DTYPES = ("float16", "bfloat16")

_M, _N, _K = 16, 8, 16  # the shape of the instruction
_WORDS = 4  # accumulators of a thread in one instruction
_ROW_BLOCKS = (1, 2, 3, 4)
_COL_BLOCKS = (1, 2, 4, 6, 8)  # the header loads B in pairs


@dataclass(frozen=True)
class _WarpTiling:
    """A grid of warps, each with `row_blocks` x `col_blocks` instructions a pass, and passes that cover C."""

    warp_rows: int
    warp_cols: int
    row_blocks: int
    col_blocks: int
    row_passes: int
    col_passes: int

    @property
    def pass_extent(self) -> tuple[int, int]:
        """Rows and columns of C that the block covers in one pass."""
        return self.warp_rows * self.row_blocks * _M, self.warp_cols * self.col_blocks * _N

    @property
    def passes(self) -> int:
        return self.row_passes * self.col_passes

    @property
    def pass_words(self) -> int:
        return self.row_blocks * self.col_blocks * _WORDS


@cache
def plan(
    m: int, n: int, k: int, dtype: DType, c_dtype: DType, orders: tuple[str, str, str], threads: int | None
) -> GemmPlan:
    """Plan an (m, n, k) product; `orders` are those of A, B and C; `threads` None leaves the number to the variant."""
    if threads is None:
        threads = default_threads(m, n, 1, MAX_ACCUMULATOR_WORDS)
    tiling = min(_candidates(m, n, threads), key=lambda candidate: _cost(candidate, threads))
    # No warp starts past an extent, so whole warp tiles are all that is read.
    reach = _round_up(m, tiling.row_blocks * _M), _round_up(n, tiling.col_blocks * _N), _round_up(k, _K)
    return GemmPlan(
        variant="mma_sync",
        header="devmath/gemm/mma_sync.cuh",
        m=m,
        n=n,
        k=k,
        threads=threads,
        a=swizzled_layout(dtype, m, k, orders[0], (reach[0], reach[2])),
        b=swizzled_layout(dtype, k, n, orders[1], (reach[2], reach[1])),
        c=_c_layout(c_dtype, m, n, orders[2]),
        fragment=_fragment(m, n, tiling),
        template=f"MmaSyncBlock<Fragment, {tiling.row_blocks}, {tiling.col_blocks}>",
    )


def _candidates(m: int, n: int, threads: int) -> Iterator[_WarpTiling]:
    """Every tiling whose accumulators of one pass fit the registers."""
    most = max_accumulator_words(threads)
    for (warp_rows, warp_cols), r, c in product(warp_grids(threads), _ROW_BLOCKS, _COL_BLOCKS):
        if r * c * _WORDS <= most:
            row_passes, col_passes = -(-m // (warp_rows * r * _M)), -(-n // (warp_cols * c * _N))
            yield _WarpTiling(warp_rows, warp_cols, r, c, row_passes, col_passes)


def _cost(tiling: _WarpTiling, threads: int) -> tuple[float, ...]:
    """Order of preference: fits the register form; cycles of a warp per 16 of k; square warp tiles.

    Cycles, of one of the four partitions of an SM: about 8 an mma; 16 a block of A and 8 a block of B from shared
    memory, which the four share (128 bytes a cycle).
    """
    cycles = 8 * tiling.row_blocks * tiling.col_blocks + 16 * tiling.row_blocks + 8 * tiling.col_blocks
    fixed = 16  # loop and addresses, so that tiny passes do not look free
    return (
        tiling.pass_words * tiling.passes > max_accumulator_words(threads),
        tiling.passes * (cycles + fixed),
        abs(math.log2(tiling.row_blocks * _M / (tiling.col_blocks * _N))),
    )


def _round_up(extent: int, unit: int) -> int:
    return -(-extent // unit) * unit


def _c_layout(dtype: DType, m: int, n: int, order: str) -> TileLayout:
    """16-bit C is laid out like A and B, so that it can be an operand of the next product."""
    if dtype.itemsize == 2:
        return swizzled_layout(dtype, m, n, order, (m, n))
    # A quarter of a warp writes 32 bytes of each of two rows, half of one 4: odd multiples of 32 keep those apart.
    return padded_layout(dtype, m, n, order, (m, n), unit_bytes=32)


def _fragment(m: int, n: int, tiling: _WarpTiling) -> FragmentMap:
    """Registers: the instruction's four, then column blocks, row blocks, passes along n, passes along m."""
    rows, cols = tiling.pass_extent
    row_block = _WORDS * tiling.col_blocks
    row_pass = tiling.pass_words * tiling.col_passes
    return FragmentMap(
        rows=m,
        cols=n,
        size=tiling.pass_words * tiling.passes,
        row_of_thread=digits((4, 8, 1), (WARP * tiling.warp_cols, tiling.warp_rows, tiling.row_blocks * _M)),
        row_of_register=digits((2, 2, 8), (row_block, tiling.row_blocks, _M), (row_pass, tiling.row_passes, rows)),
        col_of_thread=digits((1, 4, 2), (WARP, tiling.warp_cols, tiling.col_blocks * _N)),
        col_of_register=digits(
            (1, 2, 1), (_WORDS, tiling.col_blocks, _N), (tiling.pass_words, tiling.col_passes, cols)
        ),
    )
