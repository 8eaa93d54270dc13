"""Several products a block: how many lanes of a warp share one, and where the tiles of a warp's products lie."""

import math
from dataclasses import replace
from functools import cache
from typing import Any

from ..layouts import CHUNK_BYTES, TileLayout, TilePerProduct, round_up
from .gemm_plan import WARP, GemmPlan

EXECUTIONS = ("block", "warp", "thread")
MAX_EXTENT_OF_THREAD = 8

_OUTPUTS_OF_LANE = 16  # 4 x 4: as many multiplies a step of k as there are registers to load, twice over
_MAX_THREADS = 1024
_WARPS = (4, 2)  # of a block, by default
_BLOCK_BYTES = 48 * 1024  # of A and B: four blocks or more share an SM, and hide each other's latency
_ACCESS_LANES = 8  # of 16 bytes each, which shared memory serves at a time


def threads_per_gemm(execution: str, m: int, n: int, fewest: int, product_bytes: int) -> int:
    """Threads that share an m x n product by lanes of a warp: a power of two up to 32, `fewest` at least.

    More than its outputs ask for where the operands of a warp's products would leave a block too little memory.
    """
    if execution == "thread":
        return 1
    threads = max(1 << max(math.ceil(math.log2(m * n / _OUTPUTS_OF_LANE)), 1), fewest)
    while threads < WARP and WARP // threads * product_bytes > _BLOCK_BYTES:
        threads *= 2
    return min(threads, WARP)


def threads_asked_for(execution: str, threads: int, count: int, fewest: int) -> int:
    """Threads that share a product where `threads` of a block are to compute `count` of them.

    Raises
    ------
    ValueError
        If their number is no power of two from `fewest` to 32, or not one where a thread is to compute a product.
    """
    each = threads // count
    if execution == "thread":
        if threads != count:
            raise ValueError(f"threads must be one for each of gemms_per_block, {count}, got {threads}")
        return 1
    least = max(fewest, 2)
    if threads % count or each & (each - 1) or not least <= each <= WARP:
        raise ValueError(
            f"threads must be gemms_per_block, {count}, times a power of two from {least} to {WARP}, got {threads}"
        )
    return each


def gemms_per_block(each: int, wanted: int | None, threads: int | None, product_bytes: int) -> int:
    """Products of a block, of `each` threads: those that are wanted, or enough for so many threads, or the default.

    Raises
    ------
    ValueError
        If they make no whole warps, or more than 1024 threads.
    """
    count = wanted or (threads // each if threads else _default_gemms_per_block(each, product_bytes))
    if count * each % WARP or count * each > _MAX_THREADS:
        raise ValueError(
            f"gemms_per_block must be a multiple of {WARP // each} up to {_MAX_THREADS // each}, as threads share a"
            f" product by {each}, got {count}"
        )
    return count


def _default_gemms_per_block(each: int, product_bytes: int) -> int:
    """128 threads of them, or fewer warps where their operands take too much memory."""
    of_warp = WARP // each
    warps = (count for count in _WARPS if count * of_warp * product_bytes <= _BLOCK_BYTES)
    return next(warps, 1) * of_warp


@cache
def tile_per_product(plan: GemmPlan, name: str) -> TilePerProduct:
    """Where the tiles of A, B or C of a block's products lie.

    The products of a warp read together, each at the same place of its own tile. So tiles are as far apart as keeps
    those reads in different banks.
    """
    _, stride_bytes = _best_stride(plan, name)
    return TilePerProduct(plan.threads, plan.problem.gemms_per_block, stride_bytes)


def with_dense_tiles(plan: GemmPlan, dense: dict[str, TileLayout]) -> GemmPlan:
    """Replace those tiles of a plan for several products a block that are read as fast without padding.

    A warp's copies from a batch then fill whole lines of shared memory: cp.async takes longer to write 16-byte chunks
    with gaps between lines of 32 or 64 bytes.
    """
    for name, layout in dense.items():
        tile: dict[str, Any] = {name: layout}
        candidate = replace(plan, **tile)
        if _best_stride(candidate, name)[0] <= _best_stride(plan, name)[0]:
            plan = candidate
    return plan


def _best_stride(plan: GemmPlan, name: str) -> tuple[int, int]:
    """The least wavefronts of a read, and the least distance of two tiles, in bytes, that has so few."""
    strides = _strides(plan, getattr(plan, name))
    return min((_wavefronts(plan, name, stride), stride) for stride in strides)


def _strides(plan: GemmPlan, layout: TileLayout) -> list[int]:
    """Distances, in bytes, that the tiles of two products may have."""
    if plan.threads == WARP:
        return [round_up(layout.size_bytes, layout.alignment_bytes)]
    dense = round_up(layout.size_bytes, CHUNK_BYTES)
    return [dense + extra * CHUNK_BYTES for extra in range(_ACCESS_LANES)]


def _wavefronts(plan: GemmPlan, name: str, stride_bytes: int) -> int:
    """Cycles of shared memory that a warp takes to read the first chunk that each lane needs."""
    layout, fragment = getattr(plan, name), plan.fragment
    chunks = []
    for lane in range(WARP):
        row, col = fragment.row(lane, 0), fragment.col(lane, 0)
        row, col = row if name != "b" and row < layout.rows else 0, col if name != "a" and col < layout.cols else 0
        first_byte = lane // plan.threads * stride_bytes + layout.offset(row, col) * layout.dtype.itemsize
        chunks.append(first_byte // CHUNK_BYTES)
    total = 0
    for first in range(0, WARP, _ACCESS_LANES):
        banks = [chunk % _ACCESS_LANES for chunk in set(chunks[first : first + _ACCESS_LANES])]
        total += max(map(banks.count, banks))
    return total
