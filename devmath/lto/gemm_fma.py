"""Plans of the GEMM variant on FMA units: float32, float64, complex64, complex128."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product

from ..dtypes import DType
from ..fragments import Digits, FragmentMap
from ..layouts import CHUNK_BYTES
from . import gemm_group
from .gemm_plan import (
    MAX_ACCUMULATOR_WORDS,
    WARP,
    GemmPlan,
    GemmProblem,
    accumulator_words,
    default_threads,
    dense_layout,
    digits,
    max_accumulator_words,
    padded_layout,
    registers_of_thread,
    warp_grids,
)

DTYPES = ("float32", "float64", "complex64", "complex128")

_EXTENTS = (1, 2, 3, 4, 6, 8)  # rows and columns of one thread in one pass
_PASS_WORDS = 64  # accumulators of one pass, in 32-bit registers: 8x8 float32
_OTHER_REGISTERS = 24  # addresses, counters, and what the caller keeps


@dataclass(frozen=True)
class _Axis:
    """How the rows, or the columns, of C are dealt out: to lanes, then warps, then registers, then passes."""

    extent: int
    lanes: int
    warps: int
    count: int  # outputs of a thread in one pass
    group: int  # of which so many are neighbours in memory, and come in one access
    depth: int  # values of k that come in one access

    @property
    def threads(self) -> int:
        return self.lanes * self.warps

    @property
    def passes(self) -> int:
        return -(-self.extent // (self.threads * self.count))

    @property
    def reach(self) -> int:
        """One past the last index that any thread reads; none starts past the extent."""
        last_start = (self.extent - 1) // self.group * self.group
        span = (self.count // self.group - 1) * self.threads * self.group + self.group
        return min(last_start + span, self.threads * self.count * self.passes)

    def thread_digits(self, lane_divisor: int, warp_divisor: int) -> Digits:
        return digits(
            (lane_divisor, self.lanes, self.group),
            (WARP * warp_divisor, self.warps, self.lanes * self.group),
        )

    def register_digits(self, divisor: int, pass_divisor: int) -> Digits:
        return digits(
            (divisor, self.group, 1),
            (divisor * self.group, self.count // self.group, self.threads * self.group),
            (pass_divisor, self.passes, self.threads * self.count),
        )


@cache
def plan(problem: GemmProblem) -> GemmPlan:
    """Plan a product."""
    m, n, k, dtype, orders, threads = problem.m, problem.n, problem.k, problem.a, problem.orders, problem.threads
    if threads is None:
        # float64 goes to tensor cores where a target has them, and those want the larger shares of fewer threads.
        share = MAX_ACCUMULATOR_WORDS if dtype.name == "float64" else _PASS_WORDS
        threads = default_threads(m, n, problem.words_each, share)
    of_block = problem.block_threads(threads)
    rows, cols = min(_candidates(problem, threads), key=lambda axes: _cost(axes[0], axes[1], dtype, of_block))
    tiles = {
        "a": (dtype, m, k, orders[0], (rows.reach, k)),
        "b": (dtype, k, n, orders[1], (k, cols.reach)),
        "c": (problem.c, m, n, orders[2], (m, n)),
    }
    padded = GemmPlan(
        problem=problem,
        variant="fma",
        header="devmath/gemm/fma.cuh",
        threads=threads,
        a=padded_layout(*tiles["a"]),
        b=padded_layout(*tiles["b"]),
        c=padded_layout(*tiles["c"]),
        fragment=_fragment(m, n, rows, cols),
        template=(
            f"FmaBlock<Fragment, {rows.count}, {cols.count}, {rows.group}, {cols.group}, "
            f"{', '.join('true' if conj else 'false' for conj in problem.conj)}>"
        ),
    )
    if problem.gemms_per_block == 1:
        return padded
    return gemm_group.with_dense_tiles(padded, {name: dense_layout(*tile) for name, tile in tiles.items()})


def _candidates(problem: GemmProblem, threads: int) -> Iterator[tuple[_Axis, _Axis]]:
    """Every (rows, columns) dealing of which one pass fits the registers."""
    m, n, dtype, orders = problem.m, problem.n, problem.a, problem.orders
    # An access brings a chunk of k where k runs along the lines of an operand, else a group of neighbours.
    chunk = CHUNK_BYTES // dtype.itemsize
    row_chunk, row_depth = (1, chunk) if orders[0] == "row" else (chunk, 1)
    col_chunk, col_depth = (1, chunk) if orders[1] == "col" else (chunk, 1)
    words = accumulator_words(dtype)
    in_warp = min(threads, WARP)
    lanes = [(rows, in_warp // rows) for rows in (1, 2, 4, 8, 16, 32) if rows <= in_warp]
    free = registers_of_thread(problem.block_threads(threads)) - _OTHER_REGISTERS
    for warp_grid, lane_grid, r, c in product(warp_grids(threads), lanes, _EXTENTS, _EXTENTS):
        if r * c * words <= _PASS_WORDS and (r * c + r * row_depth + c * col_depth) * words <= free:
            yield (
                _Axis(m, lane_grid[0], warp_grid[0], r, math.gcd(r, row_chunk), row_depth),
                _Axis(n, lane_grid[1], warp_grid[1], c, math.gcd(c, col_chunk), col_depth),
            )


def _cost(rows: _Axis, cols: _Axis, dtype: DType, of_block: int) -> tuple[float, ...]:
    """Order of preference: the register form fits; cycles of a warp a step of k; 4 x 8 lanes.

    Cycles, of one of the four partitions of an SM: one a real float32 multiply-add, twice that in float64; one a byte
    and lane from shared memory, which the four share (128 bytes a cycle); one to issue a load.
    """
    passes = rows.passes * cols.passes
    accumulators = rows.count * cols.count * passes * accumulator_words(dtype)
    multiplies = rows.count * cols.count * dtype.itemsize // 4 * (2 if dtype.is_complex else 1)
    loads = rows.count / max(rows.group, rows.depth) + cols.count / max(cols.group, cols.depth)
    fixed = 4  # loop and addresses, so that tiny passes do not look free
    return (
        accumulators > max_accumulator_words(of_block, accumulator_words(dtype)),
        passes * (multiplies + (rows.count + cols.count) * dtype.itemsize + loads + fixed),
        abs(math.log2(cols.lanes / 8)),
    )


def _fragment(m: int, n: int, rows: _Axis, cols: _Axis) -> FragmentMap:
    """Registers: columns run fastest, then rows, then passes along n, then passes along m."""
    size = rows.count * cols.count
    return FragmentMap(
        rows=m,
        cols=n,
        size=size * rows.passes * cols.passes,
        row_of_thread=rows.thread_digits(cols.lanes, cols.warps),
        row_of_register=rows.register_digits(cols.count, size * cols.passes),
        col_of_thread=cols.thread_digits(1, 1),
        col_of_register=cols.register_digits(1, size),
    )
