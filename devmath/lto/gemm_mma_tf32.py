"""Plans of the GEMM variant on tensor cores for float32, by mma.sync on tf32: one product a term, or three."""

from functools import cache

from ..dtypes import DType
from ..layouts import CHUNK_BYTES, TileLayout, round_up
from .gemm_plan import MAX_ACCUMULATOR_WORDS, GemmPlan, GemmProblem, default_threads, padded_layout, swizzled_layout
from .gemm_warp_tiling import warp_tiling

DTYPES = ("float32",)

_MMA_CYCLES = 13  # of two m16n8k8
_K_STEPS = (16, 8)  # the shorter one needs half the registers for operands


@cache
def plan(problem: GemmProblem) -> GemmPlan:
    """Plan a product of operands read as tf32, or of pairs of tf32 numbers: three products each.

    Three are about as exact as float32 itself.
    """
    m, n, k, dtype, orders, threads = problem.m, problem.n, problem.k, problem.a, problem.orders, problem.threads
    terms = 3 if problem.math == "3xtf32" else 1
    if threads is None:
        threads = default_threads(m, n, 1, MAX_ACCUMULATOR_WORDS)
    # With three terms an element takes three registers: the number itself, its big and its small part.
    tiling = warp_tiling(problem, threads, _MMA_CYCLES * terms, _K_STEPS, element_registers=terms)
    rows, cols = tiling.reach(m, n)
    depth = round_up(k, min(_K_STEPS))
    return GemmPlan(
        problem=problem,
        variant="mma_tf32",
        header="devmath/gemm/mma_tf32.cuh",
        threads=threads,
        a=_layout(dtype, m, k, orders[0], orders[0] == "row", (rows, depth)),
        b=_layout(dtype, k, n, orders[1], orders[1] == "col", (depth, cols)),
        c=_c_layout(problem.c, m, n, orders[2]),
        fragment=tiling.fragment(m, n),
        template=(
            f"MmaTf32Block<Fragment, {tiling.row_blocks}, {tiling.col_blocks}, {terms}, {tiling.k_step}, "
            f"{tiling.unroll}>"
        ),
    )


def _layout(
    dtype: DType, rows: int, cols: int, order: str, is_k_contiguous: bool, reach: tuple[int, int]
) -> TileLayout:
    """Tile that ldmatrix reads where k runs along its lines, else single lanes, 32 bytes of each of four lines."""
    if is_k_contiguous:
        return swizzled_layout(dtype, rows, cols, order, reach)
    return padded_layout(dtype, rows, cols, order, reach, unit_bytes=32)


def _c_layout(dtype: DType, m: int, n: int, order: str) -> TileLayout:
    """Tile that lanes write in pairs along a row, 32 bytes of each of four lines, or 32 bytes of every second line."""
    return padded_layout(dtype, m, n, order, (m, n), unit_bytes=32 if order == "row" else CHUNK_BYTES)
