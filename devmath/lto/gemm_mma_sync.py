"""Plans of the GEMM variant on tensor cores by mma.sync: operands of 16 bits or 8, float32 or int32 sums."""

from functools import cache

from ..dtypes import DType
from ..layouts import TileLayout, round_up
from .gemm_plan import MAX_ACCUMULATOR_WORDS, GemmPlan, GemmProblem, default_threads, swizzled_layout, wide_c_layout
from .gemm_warp_tiling import warp_tiling

DTYPES = ("float16", "bfloat16", "int8", "uint8", "float8_e4m3fn", "float8_e5m2")

_MMA_CYCLES = {2: 8, 1: 4}  # by bytes of an element: of one m16n8k16, of half an m16n8k32


@cache
def plan(problem: GemmProblem) -> GemmPlan:
    """Plan a product."""
    m, n, k, a, b, threads = problem.m, problem.n, problem.k, problem.a, problem.b, problem.threads
    a_order, b_order = ("row", "col") if a.itemsize == 1 else problem.orders[:2]  # k along the lines of 8-bit tiles
    if threads is None:
        threads = default_threads(m, n, 1, MAX_ACCUMULATOR_WORDS)
    # A float8 number takes a register of its size, and where there is no instruction for it two of them, as a half.
    registers = 2 if a.itemsize == 1 and not a.is_integer else 1
    tiling = warp_tiling(problem, threads, _MMA_CYCLES[a.itemsize], (32 // a.itemsize,), registers)
    rows, cols = tiling.reach(m, n)
    depth = round_up(k, tiling.k_step)
    return GemmPlan(
        problem=problem,
        variant="mma_sync",
        header="devmath/gemm/mma_sync.cuh",
        threads=threads,
        a=swizzled_layout(a, m, k, a_order, (rows, depth)),
        b=swizzled_layout(b, k, n, b_order, (depth, cols)),
        c=_c_layout(problem.c, m, n, problem.orders[2]),
        fragment=tiling.fragment(m, n),
        template=f"MmaSyncBlock<Fragment, {tiling.row_blocks}, {tiling.col_blocks}, {a.itemsize}>",
    )


def _c_layout(dtype: DType, m: int, n: int, order: str) -> TileLayout:
    """C of 16 bits, or 8, is laid out like A and B, so that it can be an operand of the next product."""
    if dtype.itemsize <= 2:
        return swizzled_layout(dtype, m, n, order, (m, n))
    return wide_c_layout(dtype, m, n, order)
