"""Plans of the GEMM variant on tensor cores by mma.sync: float16 and bfloat16 operands, float32 sums."""

from functools import cache

from ..dtypes import DType
from ..layouts import TileLayout
from .gemm_plan import MAX_ACCUMULATOR_WORDS, GemmPlan, GemmProblem, default_threads, padded_layout, swizzled_layout
from .gemm_warp_tiling import round_up, warp_tiling

DTYPES = ("float16", "bfloat16")

_MMA_CYCLES = 8  # of one m16n8k16


@cache
def plan(problem: GemmProblem) -> GemmPlan:
    """Plan a product."""
    m, n, k, dtype, orders, threads = problem.m, problem.n, problem.k, problem.a, problem.orders, problem.threads
    if threads is None:
        threads = default_threads(m, n, 1, MAX_ACCUMULATOR_WORDS)
    tiling = warp_tiling(problem, threads, _MMA_CYCLES)
    rows, cols = tiling.reach(m, n)
    depth = round_up(k, tiling.k_step)
    return GemmPlan(
        problem=problem,
        variant="mma_sync",
        header="devmath/gemm/mma_sync.cuh",
        threads=threads,
        a=swizzled_layout(dtype, m, k, orders[0], (rows, depth)),
        b=swizzled_layout(dtype, k, n, orders[1], (depth, cols)),
        c=_c_layout(problem.c, m, n, orders[2]),
        fragment=tiling.fragment(m, n),
        template=f"MmaSyncBlock<Fragment, {tiling.row_blocks}, {tiling.col_blocks}>",
    )


def _c_layout(dtype: DType, m: int, n: int, order: str) -> TileLayout:
    """16-bit C is laid out like A and B, so that it can be an operand of the next product."""
    if dtype.itemsize == 2:
        return swizzled_layout(dtype, m, n, order, (m, n))
    # A quarter of a warp writes 32 bytes of each of two rows, half of one 4: odd multiples of 32 keep those apart.
    return padded_layout(dtype, m, n, order, (m, n), unit_bytes=32)
