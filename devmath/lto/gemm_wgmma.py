"""Plans of the GEMM variant on tensor cores by wgmma, on sm_90a: float16 and bfloat16 operands, float32 sums."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from ..dtypes import DType
from ..fragments import FragmentMap
from ..layouts import CHUNK_BYTES, TileLayout
from .gemm_plan import (
    MAX_ACCUMULATOR_WORDS,
    GemmPlan,
    GemmProblem,
    default_threads,
    digits,
    max_accumulator_words,
    padded_layout,
)

DTYPES = ("float16", "bfloat16")
ARCHITECTURES = ("sm_90a",)

_WARPGROUP = 128
_MAX_THREADS = 512  # beyond, registers allow narrow instructions only, which wait for shared memory
_M, _K = 64, 16  # of the instruction, for each warpgroup
_N_STEP, _MAX_N = 8, 256
_MIN_N = 16
_MIN_COVERAGE = 0.62  # of what is multiplied is kept; mma.sync, of finer blocks, reaches 62 % of the rate of wgmma


@dataclass(frozen=True)
class _Tiling:
    """A grid of warpgroups, each with 64 x `n` outputs a pass, and passes that cover C."""

    group_rows: int
    group_cols: int
    n: int
    row_passes: int
    col_passes: int

    @property
    def pass_words(self) -> int:
        """Accumulators of a thread in one pass."""
        return self.n // 2

    @property
    def words(self) -> int:
        """Accumulators of a thread in all passes."""
        return self.pass_words * self.row_passes * self.col_passes


def obstacle(problem: GemmProblem) -> str | None:
    """Why wgmma cannot compute a product, as the end of a sentence; None where it can."""
    if problem.k % _K:
        return f"k must be a multiple of {_K}, got {problem.k}"  # values past it cannot be masked
    if problem.accumulator.name == "float16":
        return "its sums are float32, not float16"
    threads = problem.threads
    if threads is not None and (threads % _WARPGROUP or threads > _MAX_THREADS):
        return f"threads must be a multiple of {_WARPGROUP} up to {_MAX_THREADS}, got {threads}"
    return None


def drawback(problem: GemmProblem) -> str | None:
    """Why mma.sync, whose blocks are finer, is the better choice, as the end of a sentence; None where it is not.

    It is where much of what wgmma multiplies is wasted: so much that mma.sync takes less time, or, where C fits the
    registers of the block, so much that it does not fit any more.
    """
    m, n, threads = problem.m, problem.n, _threads(problem)
    if m < _M or n < _MIN_N:
        return f"a tile below {_M} x {_MIN_N} leaves most of an instruction idle"
    tiling = _best_tiling(problem)
    most = max_accumulator_words(threads, words_each=1)
    kept = m * n / (tiling.words * threads)
    if kept < _MIN_COVERAGE:
        return f"only {kept:.0%} of what it multiplies would be kept"
    if tiling.words > most and m * n <= most * threads:
        return f"its accumulators do not fit the registers of {threads} threads"
    return None


@cache
def plan(problem: GemmProblem) -> GemmPlan:
    """Plan a product to which there is no `obstacle`."""
    m, n, k, dtype, orders, threads = problem.m, problem.n, problem.k, problem.a, problem.orders, _threads(problem)
    tiling = _best_tiling(problem)
    rows, cols = _round_up(m, _M), _round_up(n, tiling.n)  # all that is read: no warpgroup starts past an extent
    return GemmPlan(
        problem=problem,
        variant="wgmma",
        header="devmath/gemm/wgmma.cuh",
        threads=threads,
        a=_panel_layout(dtype, m, k, orders[0], (rows, k)),
        b=_panel_layout(dtype, k, n, orders[1], (k, cols)),
        c=_c_layout(problem.c, m, n, orders[2]),
        fragment=_fragment(m, n, tiling),
        template=f"WgmmaBlock<Fragment, {tiling.n}>",
    )


def _threads(problem: GemmProblem) -> int:
    """Those asked for, or whole warpgroups near the number that every variant would take."""
    if problem.threads is not None:
        return problem.threads
    return max(default_threads(problem.m, problem.n, problem.words_each, MAX_ACCUMULATOR_WORDS), _WARPGROUP)


def _best_tiling(problem: GemmProblem) -> _Tiling:
    threads = _threads(problem)
    candidates = _tilings(problem.m, problem.n, problem.orders[1], threads)
    return min(candidates, key=lambda tiling: _cost(tiling, problem.k, threads))


def _tilings(m: int, n: int, b_order: str, threads: int) -> Iterator[_Tiling]:
    """Every tiling whose accumulators of one pass fit the registers, and whose instructions start where they may."""
    groups = threads // _WARPGROUP
    panel = _panel_length(n, itemsize=2)
    widest = min(_MAX_N, 2 * max_accumulator_words(threads, words_each=1), _round_up(n, _N_STEP))
    for group_cols in (cols for cols in range(1, groups + 1) if groups % cols == 0):
        group_rows = groups // group_cols
        for width in range(_N_STEP, widest + 1, _N_STEP):
            row_passes, col_passes = -(-m // (group_rows * _M)), -(-n // (group_cols * width))
            # Columns along the lines of B: an instruction starts with a panel, and ends in the last one at the latest.
            is_inside = width >= n or (width % panel == 0 and _round_up(n, width) <= _round_up(n, panel))
            if b_order == "col" or is_inside:
                yield _Tiling(group_rows, group_cols, width, row_passes, col_passes)


def _cost(tiling: _Tiling, k: int, threads: int) -> tuple[float, ...]:
    """Order of preference: fits the register form; cycles of the SM.

    An instruction takes n / 2 cycles to multiply and 16 + n / 4 to read 2048 + 32 n bytes of shared memory.
    """
    instruction = max(tiling.n / 2, 16 + tiling.n / 4)
    fixed = 80  # fence, first read, wait
    passes = tiling.row_passes * tiling.col_passes
    return (
        tiling.words > max_accumulator_words(threads, words_each=1),
        passes * (threads // _WARPGROUP * k // _K * instruction + fixed),
    )


def _round_up(extent: int, unit: int) -> int:
    return -(-extent // unit) * unit


def _panel_length(line: int, itemsize: int) -> int:
    """Elements of the swizzle that pads a line least, the wider one of two; of the narrowest where a line fits it."""
    wide, middle, narrow = (swizzle * CHUNK_BYTES // itemsize for swizzle in (8, 4, 2))
    return narrow if line <= narrow else min((wide, middle), key=lambda length: _round_up(line, length))


def _panel_layout(dtype: DType, rows: int, cols: int, order: str, reach: tuple[int, int]) -> TileLayout:
    """Tile of panels that are just as wide as their swizzle; `reach` is the (rows, columns) extent that is read."""
    lines, positions = reach if order == "row" else reach[::-1]
    length = _panel_length(positions, dtype.itemsize)
    return TileLayout(dtype, rows, cols, order, length, _round_up(lines, 8), length * dtype.itemsize // CHUNK_BYTES)


def _c_layout(dtype: DType, m: int, n: int, order: str) -> TileLayout:
    """16-bit C is laid out like A, so that it can be an operand of the next product."""
    if dtype.itemsize == 2:
        return _panel_layout(dtype, m, n, order, (_round_up(m, _M), n))
    # A quarter of a warp writes 32 bytes of each of two rows, half of one 4: odd multiples of 32 keep those apart.
    return padded_layout(dtype, m, n, order, (m, n), unit_bytes=32)


def _fragment(m: int, n: int, tiling: _Tiling) -> FragmentMap:
    """Registers: the instruction's, then passes along n, passes along m."""
    row_pass = tiling.pass_words * tiling.col_passes
    return FragmentMap(
        rows=m,
        cols=n,
        size=tiling.words,
        row_of_thread=digits((4, 8, 1), (32, 4, 16), (_WARPGROUP * tiling.group_cols, tiling.group_rows, _M)),
        row_of_register=digits((2, 2, 8), (row_pass, tiling.row_passes, _M * tiling.group_rows)),
        col_of_thread=digits((1, 4, 2), (_WARPGROUP, tiling.group_cols, tiling.n)),
        col_of_register=digits(
            (1, 2, 1), (4, tiling.n // 8, 8), (tiling.pass_words, tiling.col_passes, tiling.n * tiling.group_cols)
        ),
    )
