"""How the warpgroups of a block share C by wgmma, how its tiles lie, and the instruction that a unit declares.

All of that is the same for every type of elements: an instruction multiplies 64 x n by 32 bytes of k.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ..dtypes import DType
from ..fragments import FragmentMap
from ..layouts import CHUNK_BYTES, TileLayout, round_up
from .gemm_plan import (
    MAX_ACCUMULATOR_WORDS,
    MIN_OTHER_REGISTERS,
    GemmProblem,
    default_threads,
    digits,
    max_accumulator_words,
    registers_of_thread,
)
from .tile_source import element_text

ARCHITECTURES = ("sm_90a",)
M = 64  # rows of the instruction, for each warpgroup

_WARPGROUP = 128
_K_BYTES = 32
_MAX_N = 256
_MIN_N, _MIN_N_OF_PASSES = 16, 32
_MIN_COVERAGE = 0.62  # of what is multiplied is kept; mma.sync, of finer blocks, reaches 62 % of the rate of wgmma


@dataclass(frozen=True)
class Method:
    """How a variant uses the instruction.

    Parameters
    ----------
    terms : int
        Instructions for each 64 x n x 32 bytes.
    a_registers : int
        Registers that hold A; 0 where it is read from shared memory.
    max_threads : int
        Of a block. Beyond 512 registers allow narrow instructions only, which wait for shared memory.
    """

    terms: int = 1
    a_registers: int = 0
    max_threads: int = 512

    def pass_registers(self, pass_words: int) -> int:
        """Registers that a pass takes beside the accumulators of the caller: several terms are summed up apart."""
        return self.a_registers + (pass_words if self.terms > 1 else 0)

    def instruction_cycles(self, n: int) -> float:
        """Cycles of the SM: n / 2 to multiply, n / 4 to read 32 n bytes of B, 16 to read 2048 of A."""
        return self.terms * max(n / 2, n / 4 + (0 if self.a_registers else 16))


@dataclass(frozen=True)
class Tiling:
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

    def reach(self, m: int, n: int) -> tuple[int, int]:
        """Rows of A and columns of B that are read: no warpgroup starts past an extent."""
        return round_up(m, M), round_up(n, self.n)

    def fragment(self, m: int, n: int) -> FragmentMap:
        """Registers: the instruction's, then passes along n, passes along m."""
        row_pass = self.pass_words * self.col_passes
        return FragmentMap(
            rows=m,
            cols=n,
            size=self.words,
            row_of_thread=digits((4, 8, 1), (32, 4, 16), (_WARPGROUP * self.group_cols, self.group_rows, M)),
            row_of_register=digits((2, 2, 8), (row_pass, self.row_passes, M * self.group_rows)),
            col_of_thread=digits((1, 4, 2), (_WARPGROUP, self.group_cols, self.n)),
            col_of_register=digits(
                (1, 2, 1), (4, self.n // 8, 8), (self.pass_words, self.col_passes, self.n * self.group_cols)
            ),
        )


def obstacle(problem: GemmProblem, method: Method) -> str | None:
    """Why wgmma cannot compute a product, as the end of a sentence; None where it can."""
    if problem.k % k_step(problem):
        return f"k must be a multiple of {k_step(problem)}, got {problem.k}"  # values past it cannot be masked
    if problem.accumulator.name == "float16":
        return "its sums are float32, not float16"
    threads = problem.threads
    if threads is not None and (threads % _WARPGROUP or threads > method.max_threads):
        return f"threads must be a multiple of {_WARPGROUP} up to {method.max_threads}, got {threads}"
    return None


def drawback(problem: GemmProblem, method: Method) -> str | None:
    """Why mma.sync, whose blocks are finer, is the better choice, as the end of a sentence; None where it is not.

    It is where much of what wgmma multiplies is wasted: so much that mma.sync takes less time, or, where C fits the
    registers of the block, so much that it does not fit any more.
    """
    m, n, threads = problem.m, problem.n, threads_of(problem)
    if m < M or n < _MIN_N:
        return f"a tile below {M} x {_MIN_N} leaves most of an instruction idle"
    tiling = best_tiling(problem, method)
    most = max_accumulator_words(threads, words_each=1)
    kept = m * n / (tiling.words * threads)
    if kept < _MIN_COVERAGE:
        return f"only {kept:.0%} of what it multiplies would be kept"
    if tiling.words > most and m * n <= most * threads:
        return f"its accumulators do not fit the registers of {threads} threads"
    if tiling.n < min(n, _MIN_N_OF_PASSES):
        return f"{threads} threads have registers for instructions of {tiling.n} columns only"
    return None


def k_step(problem: GemmProblem) -> int:
    """Values of k that an instruction multiplies."""
    return _K_BYTES // problem.a.itemsize


def threads_of(problem: GemmProblem) -> int:
    """Those asked for, or whole warpgroups near the number that every variant would take."""
    if problem.threads is not None:
        return problem.threads
    return max(default_threads(problem.m, problem.n, problem.words_each, MAX_ACCUMULATOR_WORDS), _WARPGROUP)


def tile_orders(problem: GemmProblem) -> tuple[str, str]:
    """Orders of the tiles of A and B: those asked for where elements have 16 bits, else k runs along the lines."""
    return problem.orders[:2] if problem.a.itemsize == 2 else ("row", "col")


def best_tiling(problem: GemmProblem, method: Method) -> Tiling:
    """The one that takes the fewest cycles of those that fit the registers."""
    return min(_tilings(problem, method), key=lambda tiling: _cost(tiling, problem, method))


def _tilings(problem: GemmProblem, method: Method) -> Iterator[Tiling]:
    """Every tiling whose accumulators of one pass fit the registers, and whose instructions start where they may."""
    m, n, threads = problem.m, problem.n, threads_of(problem)
    groups = threads // _WARPGROUP
    panel = _panel_length(n, problem.b.itemsize)
    free = registers_of_thread(threads) - MIN_OTHER_REGISTERS
    for group_cols in (cols for cols in range(1, groups + 1) if groups % cols == 0):
        group_rows = groups // group_cols
        for width in _widths(problem):
            row_passes, col_passes = -(-m // (group_rows * M)), -(-n // (group_cols * width))
            tiling = Tiling(group_rows, group_cols, width, row_passes, col_passes)
            words = tiling.pass_words
            fits = words <= max_accumulator_words(threads, 1) and words + method.pass_registers(words) <= free
            # Columns along the lines of B: an instruction starts with a panel, and ends in the last one at the latest.
            is_inside = width >= n or (width % panel == 0 and round_up(n, width) <= round_up(n, panel))
            if fits and (tile_orders(problem)[1] == "col" or is_inside):
                yield tiling


def _widths(problem: GemmProblem) -> Iterator[int]:
    """Numbers of columns that the instruction takes, up to the first that is enough."""
    for width in range(8, _MAX_N + 1, 8):
        if not problem.a.is_integer or width <= 32 or width % 16 == 0:
            yield width
            if width >= problem.n:
                return


def _cost(tiling: Tiling, problem: GemmProblem, method: Method) -> tuple[float, ...]:
    """Order of preference: fits the register form; leaves registers to a pass there; cycles of the SM."""
    threads = threads_of(problem)
    fixed = 80 * method.terms  # fence, first read, wait
    passes = tiling.row_passes * tiling.col_passes
    free = registers_of_thread(threads) - MIN_OTHER_REGISTERS - tiling.words
    instructions = threads // _WARPGROUP * problem.k // k_step(problem)
    return (
        tiling.words > max_accumulator_words(threads, words_each=1),
        max(method.pass_registers(tiling.pass_words) - free, 0),
        passes * (instructions * method.instruction_cycles(tiling.n) + fixed),
    )


def _panel_length(line: int, itemsize: int) -> int:
    """Elements of the swizzle that pads a line least, the wider one of two; of the narrowest where a line fits it."""
    wide, middle, narrow = (swizzle * CHUNK_BYTES // itemsize for swizzle in (8, 4, 2))
    return narrow if line <= narrow else min((wide, middle), key=lambda length: round_up(line, length))


def panel_layout(dtype: DType, rows: int, cols: int, order: str, reach: tuple[int, int], copies: int = 1) -> TileLayout:
    """Tile of panels that are just as wide as their swizzle; `reach` is the (rows, columns) extent that is read."""
    lines, positions = reach if order == "row" else reach[::-1]
    length = _panel_length(positions, dtype.itemsize)
    swizzle = length * dtype.itemsize // CHUNK_BYTES
    return TileLayout(dtype, rows, cols, order, length, round_up(lines, 8), swizzle, copies)


_PTX = {
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "tf32",
    "int8": "s8",
    "uint8": "u8",
    "float8_e4m3fn": "e4m3",
    "float8_e5m2": "e5m2",
}


def instruction(problem: GemmProblem, n: int) -> str:
    """The line by which a unit declares its instruction of wgmma.cuh, with `n` columns."""
    a, b = problem.a, problem.b
    sums, macro, scales = ("s32", "INTS", "") if a.is_integer else ("f32", "FLOATS", ", 1, 1")
    first = n // 2  # the operands that follow the accumulators
    majors = (f", %{first + 3}, %{first + 4}", f", %{first + 6}") if a.itemsize == 2 else ("", "")
    arguments = [
        str(n),
        element_text(a),
        element_text(b),
        f'"m64n{n}k{k_step(problem)}.{sums}.{_PTX[a.name]}.{_PTX[b.name]}"',
        element_text(problem.accumulator),
        macro,
        str(n // 8),
        *(str(first + i) for i in range(6)),
        *(f'"{scales}{major}"' for major in majors),
    ]
    return f"DEVMATH_WGMMA({', '.join(arguments)})"
