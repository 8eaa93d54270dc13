"""GEMM units as plain C++: all cases of a test module in one program, which a block of a case calls once a run."""

import struct
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from devmath.dtypes import BY_NAME
from devmath.fragments import FragmentMap
from devmath.layouts import TileLayout
from devmath.lto import gemm_source
from devmath.lto.gemm_plan import GemmPlan, GemmProblem
from devmath.lto.gemm_register_operand import register_operand_form
from devmath.lto.variants import select
from tests.problems import problem

HERE = Path(__file__).parent
INCLUDE = HERE.parents[1] / "devmath" / "lto" / "include"
FLAGS = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-fno-strict-aliasing"]
SANITIZERS = ["-fsanitize=address,alignment,bounds", "-fno-sanitize-recover=all"]


#: How a scalar of a request is passed to a unit, by the type of the sums where it is not as it is.
SCALARS = {
    "float16": "devmath::convert<devmath::Half>(call.request.{0}[0]).bits",
    **dict.fromkeys(("complex64", "complex128"), "call.request.{0}[0], call.request.{0}[1]"),
}


@dataclass(frozen=True)
class Case:
    """One unit: a problem, and how its operands are stored."""

    m: int
    n: int
    k: int
    dtype: str
    orders: str = "rrr"
    threads: int | None = None
    c_dtype: str | None = None
    forms: tuple[str, ...] = ("tile", "tile", "tile")  # two of them: the register form, of A in "registers" or not
    math: str = "ieee"
    conj: tuple[bool, bool] = (False, False)
    b_dtype: str | None = None
    sums: str | None = None

    @property
    def plan(self) -> GemmPlan:
        return self.plan_of(self.problem)

    def plan_of(self, asked: GemmProblem) -> GemmPlan:
        return select(asked).plan(asked)

    @property
    def problem(self) -> GemmProblem:
        plain = problem(self.m, self.n, self.k, self.dtype, self.orders, self.threads, self.c_dtype, self.math)
        changes = {"conj": self.conj, "b": BY_NAME[self.b_dtype or self.dtype]}
        if self.sums:
            changes |= {"accumulator": BY_NAME[self.sums], "c": BY_NAME[self.c_dtype or self.sums]}
        return replace(plain, **changes)

    def layout(self, name: str) -> TileLayout:
        """Where "a", "b" or "c" lies, but for the leading dimension of a plain array."""
        is_plain = self.forms["abc".index(name)] == "plain"
        return self.plan.plain(name) if is_plain else getattr(self.plan, name)

    @property
    def a_fragment(self) -> FragmentMap:
        """How A lies in registers: as the accumulator of a product that the same variant plans."""
        first = replace(self.problem, n=self.k, c=self.problem.accumulator, threads=self.plan.threads)
        return self.plan_of(first).fragment

    @property
    def is_register_form(self) -> bool:
        return len(self.forms) == 2

    def __str__(self) -> str:
        conj = "".join(f"-{name}_conj" for name, on in zip("ab", self.conj, strict=True) if on)
        threads, forms = self.threads or "default", "".join(form[0] for form in self.forms)
        dtype = f"{self.dtype}-{self.b_dtype}" if self.b_dtype else self.dtype
        return f"{self.m}x{self.n}x{self.k}-{dtype}-{self.orders}-{threads}-{self.c_dtype or 'sums'}-{forms}{conj}"


def random(rng, dtype: str, *shape: int) -> np.ndarray:
    """Integers of the whole range of their type, else normals."""
    if BY_NAME[dtype].is_integer:
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    values = rng.standard_normal(shape)
    if BY_NAME[dtype].is_complex:
        values = values + 1j * rng.standard_normal(shape)
    return values.astype(BY_NAME[dtype].numpy)


def wide(array: np.ndarray) -> np.ndarray:
    """The same numbers in float64 or complex128."""
    return array.astype(np.complex128 if np.iscomplexobj(array) else np.float64)


def as_tf32(array: np.ndarray) -> np.ndarray:
    """float32 as tensor cores read it: without the low 13 bits."""
    return (np.asarray(array, np.float32).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def operands(case: Case, rng) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random A, B and C of a case."""
    a, b = random(rng, case.dtype, case.m, case.k), random(rng, case.b_dtype or case.dtype, case.k, case.n)
    return a, b, random(rng, case.plan.c.dtype.name, case.m, case.n)


def of_one_sign(case: Case, *numbers: np.ndarray) -> tuple[np.ndarray, ...]:
    """Magnitudes where C is a lone element: alpha A B and beta C may cancel there, and any error is then large."""
    return tuple(map(np.abs, numbers)) if case.m * case.n == 1 else numbers


def relative_error(got: np.ndarray, expected: np.ndarray) -> float:
    """L2 norm of the error over that of what was expected."""
    return np.linalg.norm(wide(got) - expected) / np.linalg.norm(expected)


def assert_poison_stays(program: "Program", case: Case, poison: float) -> None:
    """What is not finite in a row of A, or in a column of B, stays in that row, or column, of C."""
    a, b, c = operands(case, np.random.default_rng())
    a[3, :] = poison
    b[:, 5] = poison
    finite = np.isfinite(wide(program.tile_form(case, 1.0, a, b, 1.0, c)))
    expected = np.ones_like(finite)
    expected[3, :] = expected[:, 5] = False
    assert np.array_equal(finite, expected)


def assert_about_as_exact_as_float32(program: "Program", case: Case) -> None:
    """At most four times the error of sums in float32, although tensor cores cut where float32 rounds."""
    a, b, c = operands(case, np.random.default_rng())
    exact, ieee = wide(a) @ wide(b), np.zeros_like(c)
    for k in range(case.k):
        ieee += a[:, k : k + 1] * b[k : k + 1]
    got = program.tile_form(case, 1.0, a, b, 0.0, c)
    assert relative_error(got, exact) < 4 * relative_error(ieee, exact)


def assert_keeps(program: "Program", case: Case, bound: float) -> None:
    """No element is off by more than `bound` times the sum of the magnitudes of its products."""
    a, b, c = operands(case, np.random.default_rng())
    error = np.abs(program.tile_form(case, 1.0, a, b, 0.0, c) - wide(a) @ wide(b))
    assert (error <= bound * (np.abs(wide(a)) @ np.abs(wide(b)))).all()


class Memory:
    """One operand in memory: a tile, or a plain array with lines three elements apart.

    Where no element is every byte is `filler`: 0xFF makes NaN of any type. A plain array lies one element off a
    boundary, so that only accesses of one element are aligned.
    """

    def __init__(self, layout: TileLayout, form: str, array: np.ndarray, filler: int = 0xFF):
        itemsize = layout.dtype.itemsize
        self._dtype = layout.dtype.numpy
        if form == "plain":
            ld = layout.line_length + 3
            layout = TileLayout(layout.dtype, layout.rows, layout.cols, layout.order, ld, layout.lines)
            size_bytes = layout.size_bytes - 3 * itemsize  # the last line ends with its last element
            self.place = (size_bytes, itemsize, ld)
        else:
            size_bytes = layout.size_bytes
            self.place = (size_bytes, 0, -1)  # nobody may look at the leading dimension
        self._where = layout.offset(*np.indices((layout.rows, layout.cols)))
        self.bytes = np.full(size_bytes, filler, np.uint8)
        self._elements(self.bytes)[self._where] = array

    def _elements(self, memory: np.ndarray) -> np.ndarray:
        return memory.view(self._dtype)

    def read(self, memory: bytes) -> np.ndarray:
        """Return the array in `memory`, which must not differ from this one anywhere else."""
        after = np.frombuffer(memory, np.uint8).copy()
        array = self._elements(after)[self._where]
        self._elements(after)[self._where] = self._elements(self.bytes)[self._where]
        assert np.array_equal(after, self.bytes), "bytes changed where C has no element"
        return array


def deal_out(fragment: FragmentMap, threads: int, array: np.ndarray) -> np.ndarray:
    """Registers of all threads that hold an array; where they have none of its elements, 0xFF: NaN of any type."""
    at = np.indices((threads, fragment.size))
    inside = fragment.in_bounds(*at)
    registers = np.full((*inside.shape, array.itemsize), 0xFF, np.uint8).view(array.dtype)[..., 0]
    registers[inside] = array[fragment.row(*at)[inside], fragment.col(*at)[inside]]
    return registers


class Program:
    """Every case compiled into one executable, under the address and alignment sanitizers."""

    def __init__(self, folder: Path, cases: list[Case], flags: tuple[str, ...] = ()):
        self._cases = cases
        self._executable = folder / "units"
        source = folder / "units.cpp"
        source.write_text(_program_text(cases))
        all_flags = [*FLAGS, *SANITIZERS, f"-I{INCLUDE}", f"-I{HERE}", *flags]
        subprocess.run(["g++", *all_flags, source, "-o", self._executable], check=True)

    def tile_form(self, case: Case, alpha, a, b, beta, c) -> np.ndarray:
        """Return C after the call."""
        layouts = [case.layout(name) for name in "abc"]
        # A number around C: whatever is computed from the NaN around A and B would show.
        memories = [Memory(*parts) for parts in zip(layouts, case.forms, (a, b, c), (0xFF, 0xFF, 0x5A), strict=True)]
        operands = [memory.bytes for memory in memories]
        return memories[2].read(self._run(case, alpha, beta, [memory.place for memory in memories], operands))

    def register_form(self, case: Case, a, b, c) -> np.ndarray:
        """Return C + A B, dealt out to accumulators by the plan's fragment and collected from them."""
        plan, dtype = case.plan, case.plan.accumulator.numpy
        threads, registers = np.indices((plan.threads, plan.fragment.size))
        inside = plan.fragment.in_bounds(threads, registers)
        where = plan.fragment.row(threads, registers)[inside], plan.fragment.col(threads, registers)[inside]
        accumulators = np.full(threads.shape, -1 if plan.accumulator.is_integer else np.nan, dtype)
        accumulators[inside] = c[where]
        memory_b = Memory(case.layout("b"), case.forms[1], b)
        if case.forms[0] == "registers":
            bytes_a = deal_out(case.a_fragment, plan.threads, a)
            place_a = (bytes_a.nbytes, 0, -1)
        else:
            memory_a = Memory(case.layout("a"), case.forms[0], a)
            bytes_a, place_a = memory_a.bytes, memory_a.place
        places = [place_a, memory_b.place, (accumulators.nbytes, 0, -1)]
        after = self._run(case, 0, 0, places, [bytes_a, memory_b.bytes, accumulators])
        result = np.empty((case.m, case.n), dtype)
        result[where] = np.frombuffer(after, dtype).reshape(threads.shape)[inside]
        return result

    def _run(self, case: Case, alpha, beta, places, operands) -> bytes:
        """Send a Request of gemm_block.hpp and the operands; return what became of C."""
        scalars = [part for scalar in (alpha, beta) for part in (np.real(scalar), np.imag(scalar))]
        numbers = [self._cases.index(case), case.plan.threads, *(number for place in places for number in place)]
        message = [struct.pack("4d11i4x", *scalars, *numbers), *(operand.tobytes() for operand in operands)]
        done = subprocess.run([self._executable], input=b"".join(message), capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()[:2000]
        return done.stdout


def _program_text(cases: list[Case]) -> str:
    parts = ['#include "gemm_block.hpp"\n']
    for i, case in enumerate(cases):
        scalars = SCALARS.get(case.plan.accumulator.name, "call.request.{0}[0]")
        operands = "call.a, call.request.a.ld, call.b, call.request.b.ld"
        fragment_bytes = case.plan.fragment.size * case.plan.accumulator.itemsize
        registers = f"call.c + devmath::block_rank() * {fragment_bytes}"
        if case.forms[0] == "registers":
            parts.append(register_operand_form(case.plan, case.a_fragment, case.forms[1], f"unit{i}"))
            a_bytes = case.a_fragment.size * case.plan.a.dtype.itemsize
            arguments = f"call.a + devmath::block_rank() * {a_bytes}, call.b, call.request.b.ld, {registers}"
        elif case.is_register_form:
            parts.append(gemm_source.register_form(case.plan, case.forms, f"unit{i}"))
            arguments = f"{operands}, {registers}"
        else:
            parts.append(gemm_source.tile_form(case.plan, case.forms, f"unit{i}"))
            alpha, beta = scalars.format("alpha"), scalars.format("beta")
            arguments = f"{alpha}, {operands}, {beta}, call.c, call.request.c.ld"
        parts.append(f"static void call{i}(const devmath::Call& call) {{ unit{i}({arguments}); }}\n")
    table = ", ".join(f"call{i}" for i in range(len(cases)))
    parts.append(f"int main() {{\n  static void (*const kUnits[])(const devmath::Call&) = {{{table}}};\n"
                 "  return devmath::serve(kUnits);\n}\n")  # fmt: skip
    return "\n".join(parts)
