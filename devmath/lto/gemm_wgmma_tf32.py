"""Plans of the GEMM variant on tensor cores by wgmma for float32, read as tf32, on sm_90a."""

from functools import cache

from . import gemm_wgmma_tiling as tilings
from .gemm_plan import GemmPlan, GemmProblem, padded_layout

DTYPES = ("float32",)

_METHOD = tilings.Method()


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
        variant="wgmma_tf32",
        header="devmath/gemm/wgmma_tf32.cuh",
        threads=tilings.threads_of(problem),
        a=tilings.panel_layout(problem.a, m, k, a_order, (rows, k)),
        b=tilings.panel_layout(problem.b, k, n, b_order, (k, cols)),
        # A quarter of a warp writes 32 bytes of each of two rows, half of one 4: odd multiples of 32 keep those apart.
        c=padded_layout(problem.c, m, n, problem.orders[2], (m, n), unit_bytes=32),
        fragment=tiling.fragment(m, n),
        template=f"WgmmaTf32Block<Fragment, {tiling.n}>",
        prelude=tilings.instruction(problem, tiling.n),
    )
