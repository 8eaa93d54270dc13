"""Plans of the GEMM variant on tensor cores by wgmma, on sm_90a: operands of 16 bits or 8, float32 or int32 sums."""

from functools import cache

from ..dtypes import DType
from ..layouts import TileLayout, round_up
from . import gemm_wgmma_tiling as tilings
from .gemm_plan import GemmPlan, GemmProblem, wide_c_layout

DTYPES = ("float16", "bfloat16", "int8", "uint8", "float8_e4m3fn", "float8_e5m2")

_METHOD = tilings.Method()


def obstacle(problem: GemmProblem) -> str | None:
    """Why it cannot compute a product, as the end of a sentence; None where it can."""
    return tilings.obstacle(problem, _METHOD)


def drawback(problem: GemmProblem) -> str | None:
    """Why mma.sync is the better choice, as the end of a sentence; None where it is not."""
    return tilings.drawback(problem, _METHOD)


@cache
def plan(problem: GemmProblem) -> GemmPlan:
    """Plan a product to which there is no `obstacle`."""
    m, n, k = problem.m, problem.n, problem.k
    tiling = tilings.best_tiling(problem, _METHOD)
    rows, cols = tiling.reach(m, n)
    a_order, b_order = tilings.tile_orders(problem)
    return GemmPlan(
        problem=problem,
        variant="wgmma",
        header="devmath/gemm/wgmma.cuh",
        threads=tilings.threads_of(problem),
        a=tilings.panel_layout(problem.a, m, k, a_order, (rows, k)),
        b=tilings.panel_layout(problem.b, k, n, b_order, (k, cols)),
        c=_c_layout(problem.c, m, n, problem.orders[2]),
        fragment=tiling.fragment(m, n),
        template=f"WgmmaBlock<Fragment, {tiling.n}, {problem.a.itemsize}>",
        prelude=tilings.instruction(problem, tiling.n),
    )


def _c_layout(dtype: DType, m: int, n: int, order: str) -> TileLayout:
    """C of 16 bits, or 8, is laid out like A, so that it can be an operand of the next product."""
    if dtype.itemsize <= 2:
        return tilings.panel_layout(dtype, m, n, order, (round_up(m, tilings.M), n))
    return wide_c_layout(dtype, m, n, order)
