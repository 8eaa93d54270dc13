"""Plans of the GEMM variant on tensor cores by wgmma for float32, on sm_90a: one product of tf32 a term, or three."""

from functools import cache

from . import gemm_wgmma_tiling as tilings
from .gemm_plan import GemmPlan, GemmProblem, wide_c_layout

DTYPES = ("float32",)

_METHODS = {
    # 512 threads spill: what transposes 4-byte elements on the way in, and what splits them, needs registers too.
    "tf32": tilings.Method(max_threads=384),
    # A holds 32 values of k, two numbers in the place of one.
    "3xtf32": tilings.Method(terms=3, a_registers=32, max_threads=384),
}


def obstacle(problem: GemmProblem) -> str | None:
    """Why it cannot compute a product, as the end of a sentence; None where it can."""
    return tilings.obstacle(problem, _METHODS[problem.math])


def drawback(problem: GemmProblem) -> str | None:
    """Why mma.sync is the better choice, as the end of a sentence; None where it is not."""
    return tilings.drawback(problem, _METHODS[problem.math])


@cache
def plan(problem: GemmProblem) -> GemmPlan:
    """Plan a product to which there is no `obstacle`."""
    m, n, k = problem.m, problem.n, problem.k
    tiling, threads = tilings.best_tiling(problem, _METHODS[problem.math]), tilings.threads_of(problem)
    # With three terms the small part of B lies behind the tile.
    header, copies = ("wgmma_tf32x3", 2) if problem.math == "3xtf32" else ("wgmma_tf32", 1)
    rows, cols = tiling.reach(m, n)
    a_order, b_order = tilings.tile_orders(problem)
    return GemmPlan(
        problem=problem,
        variant="wgmma_tf32",
        header=f"devmath/gemm/{header}.cuh",
        threads=threads,
        a=tilings.panel_layout(problem.a, m, k, a_order, (rows, k)),
        b=tilings.panel_layout(problem.b, k, n, b_order, (k, cols), copies),
        c=wide_c_layout(problem.c, m, n, problem.orders[2]),
        fragment=tiling.fragment(m, n),
        template=(
            f"WgmmaTf32x3Block<Fragment, {tiling.n}, {threads}>"
            if problem.math == "3xtf32"
            else f"WgmmaTf32Block<Fragment, {tiling.n}>"
        ),
        prelude=tilings.instruction(problem, tiling.n),
    )
