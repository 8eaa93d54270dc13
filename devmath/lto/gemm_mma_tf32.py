"""Plans of the GEMM variant on tensor cores for float32, by mma.sync on tf32: one product a term, or three."""

from functools import cache

from ..dtypes import DType
from ..layouts import CHUNK_BYTES, TileLayout
from .gemm_plan import MAX_ACCUMULATOR_WORDS, GemmPlan, default_threads, padded_layout, swizzled_layout
from .gemm_warp_tiling import round_up, warp_tiling

DTYPES = ("float32",)

_MMA_CYCLES = 13  # of two m16n8k8
_K_STEPS = (16, 8)  # the shorter one needs half the registers for operands


@cache
def plan(
    m: int,
    n: int,
    k: int,
    dtype: DType,
    c_dtype: DType,
    orders: tuple[str, str, str],
    threads: int | None,
    terms: int = 1,
) -> GemmPlan:
    """Plan an (m, n, k) product of operands rounded to tf32, or split into two tf32 numbers each.

    Parameters
    ----------
    m, n, k : int
    dtype, c_dtype : DType
    orders : tuple of {"row", "col"}
        Those of A, B and C.
    threads : int or None
        None leaves the number to the variant.
    terms : {1, 3}
        Products of tf32 numbers for each product of float32 numbers. Three are about as exact as float32 itself.
    """
    if threads is None:
        threads = default_threads(m, n, 1, MAX_ACCUMULATOR_WORDS)
    # With three terms an element takes three registers: the number itself, its big and its small part.
    tiling = warp_tiling(m, n, k, dtype, threads, _MMA_CYCLES * terms, _K_STEPS, element_registers=terms)
    rows, cols = tiling.reach(m, n)
    depth = round_up(k, min(_K_STEPS))
    return GemmPlan(
        variant="mma_tf32",
        header="devmath/gemm/mma_tf32.cuh",
        m=m,
        n=n,
        k=k,
        threads=threads,
        a=_layout(dtype, m, k, orders[0], orders[0] == "row", (rows, depth)),
        b=_layout(dtype, k, n, orders[1], orders[1] == "col", (depth, cols)),
        c=_c_layout(c_dtype, m, n, orders[2]),
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
