"""Plans of the GEMM variant on tensor cores in float64, by mma.sync."""

from functools import cache

from ..dtypes import DType
from ..layouts import CHUNK_BYTES, TileLayout, round_up
from .gemm_plan import MAX_ACCUMULATOR_WORDS, GemmPlan, GemmProblem, default_threads, padded_layout
from .gemm_warp_tiling import BLOCK_COLS, BLOCK_ROWS, warp_tiling

DTYPES = ("float64",)

_MMA_CYCLES = 64  # of one m16n8k16
_MAX_THREADS = 256
_K_STEPS = (16, 8)  # the shorter one needs half the registers for operands


def drawback(problem: GemmProblem) -> str | None:
    """Why FMA units are the better choice, as the end of a sentence; None where they are not.

    They multiply at half the speed of tensor cores, but nothing past the extents. The 128 registers that a thread has
    in a block of 512 do not hold a warp's share of 128 x 128 sums and what the instruction reads.
    """
    m, n, k = problem.m, problem.n, problem.k
    work = round_up(m, BLOCK_ROWS) * round_up(n, BLOCK_COLS) * round_up(k, min(_K_STEPS))
    if work > 2 * m * n * k:
        return f"its blocks of 16 x 8 x 8 would multiply {work / (m * n * k):.1f} times the numbers there are"
    if (problem.threads or 0) > _MAX_THREADS:
        return f"{problem.threads} threads have too few registers each"
    return None


@cache
def plan(problem: GemmProblem) -> GemmPlan:
    """Plan a product."""
    m, n, k, dtype, orders, threads = problem.m, problem.n, problem.k, problem.a, problem.orders, problem.threads
    if threads is None:
        threads = default_threads(m, n, 2, MAX_ACCUMULATOR_WORDS)
    tiling = warp_tiling(problem, threads, _MMA_CYCLES, _K_STEPS)
    rows, cols = tiling.reach(m, n)
    depth = round_up(k, min(_K_STEPS))
    return GemmPlan(
        problem=problem,
        variant="mma_f64",
        header="devmath/gemm/mma_f64.cuh",
        threads=threads,
        a=_layout(dtype, m, k, orders[0], orders[0] == "row", (rows, depth)),
        b=_layout(dtype, k, n, orders[1], orders[1] == "col", (depth, cols)),
        c=_layout(problem.c, m, n, orders[2], orders[2] == "row", (m, n)),
        fragment=tiling.fragment(m, n),
        template=f"MmaF64Block<Fragment, {tiling.row_blocks}, {tiling.col_blocks}, {tiling.k_step}, {tiling.unroll}>",
    )


def _layout(dtype: DType, rows: int, cols: int, order: str, in_pairs: bool, reach: tuple[int, int]) -> TileLayout:
    """Tile of which four lanes access 64 bytes of a line where its elements move in pairs, else 16 bytes or 32."""
    return padded_layout(dtype, rows, cols, order, reach, unit_bytes=64 if in_pairs else CHUNK_BYTES)
