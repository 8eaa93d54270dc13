"""How the warps of a block share C on tensor cores: grids of warps, each with a tile of 16 x 8 blocks.

All mma.sync instructions spread a block of 16 x 8 accumulators over the lanes of a warp in the same way, whatever the
element type. So their variants have one fragment, and choose their tiles by one model of the time.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from ..fragments import FragmentMap
from ..layouts import round_up
from .gemm_plan import (
    WARP,
    GemmProblem,
    digits,
    max_accumulator_words,
    registers_of_thread,
    warp_grids,
)

BLOCK_ROWS, BLOCK_COLS = 16, 8  # of C

_BLOCK_SIZE = 4  # accumulators of a thread in one block
_ROW_BLOCKS = (1, 2, 3, 4)
_COL_BLOCKS = (1, 2, 4, 6, 8)  # mma_sync.cuh loads B in pairs
_OTHER_REGISTERS = 32  # addresses, counters, and what the caller keeps


@dataclass(frozen=True)
class WarpTiling:
    """A grid of warps, each with `row_blocks` x `col_blocks` blocks of 16 x 8 a pass, and passes that cover C.

    Operands come into registers in steps of `k_step` values of k: `step_words` 32-bit registers each time, out of
    `free_words` that accumulators, and a last step of fewer values of k, leave.
    """

    warp_rows: int
    warp_cols: int
    row_blocks: int
    col_blocks: int
    row_passes: int
    col_passes: int
    k_step: int
    step_words: int
    free_words: int

    @property
    def pass_extent(self) -> tuple[int, int]:
        """Rows and columns of C that the block covers in one pass."""
        return self.warp_rows * self.row_blocks * BLOCK_ROWS, self.warp_cols * self.col_blocks * BLOCK_COLS

    @property
    def passes(self) -> int:
        return self.row_passes * self.col_passes

    @property
    def pass_size(self) -> int:
        """Accumulators of a thread in one pass."""
        return self.row_blocks * self.col_blocks * _BLOCK_SIZE

    @property
    def size(self) -> int:
        """Accumulators of a thread in all passes."""
        return self.pass_size * self.passes

    @property
    def unroll(self) -> int:
        """Steps of k to write one after another, so that loads run ahead as far as there are registers."""
        return min(max(self.free_words // self.step_words, 1), 4)

    def reach(self, m: int, n: int) -> tuple[int, int]:
        """Rows of A and columns of B that are read: whole warp tiles, as no warp starts past an extent."""
        return round_up(m, self.row_blocks * BLOCK_ROWS), round_up(n, self.col_blocks * BLOCK_COLS)

    def fragment(self, m: int, n: int) -> FragmentMap:
        """Registers: the block's four, then column blocks, row blocks, passes along n, passes along m."""
        rows, cols = self.pass_extent
        row_block = _BLOCK_SIZE * self.col_blocks
        row_pass = self.pass_size * self.col_passes
        return FragmentMap(
            rows=m,
            cols=n,
            size=self.size,
            row_of_thread=digits((4, 8, 1), (WARP * self.warp_cols, self.warp_rows, self.row_blocks * BLOCK_ROWS)),
            row_of_register=digits(
                (2, 2, 8), (row_block, self.row_blocks, BLOCK_ROWS), (row_pass, self.row_passes, rows)
            ),
            col_of_thread=digits((1, 4, 2), (WARP, self.warp_cols, self.col_blocks * BLOCK_COLS)),
            col_of_register=digits(
                (1, 2, 1), (_BLOCK_SIZE, self.col_blocks, BLOCK_COLS), (self.pass_size, self.col_passes, cols)
            ),
        )


def warp_tiling(
    problem: GemmProblem,
    threads: int,
    mma_cycles: int,
    k_steps: tuple[int, ...] = (16,),
    element_registers: int = 1,
) -> WarpTiling:
    """Choose how `threads` share the tile of C.

    Parameters
    ----------
    problem : GemmProblem
        A and B are of types of one size.
    threads : int
    mma_cycles : int
        Cycles that one of the four partitions of an SM multiplies 16 x 8 x 16.
    k_steps : tuple of int
        Steps of k that the variant can take.
    element_registers : int
        Registers that an element of A or B takes, for each register of its own size.
    """
    candidates = _candidates(problem, threads, k_steps, element_registers)
    return min(candidates, key=lambda tiling: _cost(tiling, problem, threads, mma_cycles))


def _candidates(
    problem: GemmProblem, threads: int, k_steps: tuple[int, ...], element_registers: int
) -> Iterator[WarpTiling]:
    """Every tiling whose accumulators of one pass fit the registers."""
    m, n, k, of_one, itemsize = problem.m, problem.n, problem.k, problem.words_each, problem.a.itemsize
    of_block = problem.block_threads(threads)
    most = max_accumulator_words(of_block, of_one)
    for (warp_rows, warp_cols), r, c, k_step in product(warp_grids(threads), _ROW_BLOCKS, _COL_BLOCKS, k_steps):
        row_passes, col_passes = -(-m // (warp_rows * r * BLOCK_ROWS)), -(-n // (warp_cols * c * BLOCK_COLS))
        pass_words = r * c * _BLOCK_SIZE * of_one
        words = pass_words * row_passes * col_passes
        held = words if words <= most else pass_words  # by the register form, where there can be one
        step_words = (r * BLOCK_ROWS + c * BLOCK_COLS) * k_step // WARP * itemsize * element_registers // 4
        # The last step of fewer values is loaded while the one before is multiplied.
        tail_words = step_words if k % k_step else 0
        free_words = registers_of_thread(of_block) - held - tail_words - _OTHER_REGISTERS
        if pass_words <= most:
            yield WarpTiling(warp_rows, warp_cols, r, c, row_passes, col_passes, k_step, step_words, free_words)


def _cost(tiling: WarpTiling, problem: GemmProblem, threads: int, mma_cycles: int) -> tuple[float, ...]:
    """Order of preference: fits the register form; lacks no registers; cycles of a warp per 16 of k; square warp tiles.

    Cycles, of one of the four partitions of an SM: those of the multiplies; and those of the blocks of A and B from
    shared memory, which the four share (128 bytes a cycle).
    """
    multiplies = tiling.row_blocks * tiling.col_blocks * mma_cycles
    lines = tiling.row_blocks * BLOCK_ROWS + tiling.col_blocks * BLOCK_COLS  # of A and B
    loads = 4 * lines * 16 * problem.a.itemsize // 128
    of_one = problem.words_each
    fixed = 16 * 16 // tiling.k_step  # loop and addresses, so that tiny passes do not look free
    return (
        tiling.size * of_one > max_accumulator_words(problem.block_threads(threads), of_one),
        max(tiling.step_words - tiling.free_words, 0),
        tiling.passes * (multiplies + loads + fixed),
        abs(math.log2(tiling.row_blocks * BLOCK_ROWS / (tiling.col_blocks * BLOCK_COLS))),
    )
