"""``devmath.Gemm``: the descriptor of a block-level matrix product, and the kernel verbs of its own."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from . import dtypes
from .arguments import check_choice, check_positive_integer
from .layouts import TileLayout
from .lto import arch as targets
from .lto.mainloop_plan import MainloopPlan
from .lto.mainloop_plan import plan as plan_mainloop
from .lto.variants import GEMM_VARIANTS, Choice, GemmPlan, GemmProblem, explain, select
from .lto.variants import dtypes as dtypes_of
from .verbs import KernelConstant, Verb, front_end

ORDERS = ("row", "col")
OPERANDS = ("a", "b", "c")
MATH = ("ieee", "tf32", "3xtf32")


@dataclass(frozen=True)
class Gemm(KernelConstant):
    """Block-level product ``C = alpha * A @ B + beta * C`` of tiles in shared memory.

    Parameters
    ----------
    m, n, k : int
        Extents in elements: A is (m, k), B is (k, n), C is (m, n). Any positive numbers whose A and B fit into shared
        memory.
    dtype : dtype, optional
        Element type of A and B: float16, bfloat16 (``ml_dtypes.bfloat16`` or the name), float32, float64, complex64
        or complex128. Default float32.
    a_order, b_order, c_order : {"row", "col"}, optional
        How each tile lies in shared memory. Default "row". The arrays it is loaded from may have any strides.
    c_dtype : dtype, optional
        Element type of a C tile: that of the accumulator (default), or `dtype`, which is rounded to once.
    math : {"ieee", "tf32", "3xtf32"}, optional
        How float32 is multiplied: exactly as IEEE says, on FMA units (default); on tensor cores after rounding to
        tf32's 11 bits, several times faster; or on tensor cores in three parts, with float32's accuracy (its error is
        at most four times that of "ieee"). Every other type has "ieee" alone.
    threads : int, optional
        Threads of a block, a multiple of 32 up to 1024. Default: chosen from the extents.
    a_conj, b_conj : bool, optional
        Multiply by the complex conjugate of A, of B: with a transposed view, ``load(x.T, sa)``, by the adjoint. No
        effect on real types. Default False.
    force_variant : str, optional
        Name of the variant to compute with, one of those that `variant` may return. Default: the fastest.
    mainloop : bool, optional
        The extents are those of a tile of larger matrices, of any size: see `devmath.tiles`. `a_order` and `b_order`
        then say how the matrices lie in global memory. Default False.

    Raises
    ------
    TypeError
        If a dtype is none of the above, or an extent is no integer.
    ValueError
        If an extent is below 1, `threads` is no multiple of 32 in 32..1024, an order is neither "row" nor "col",
        `math` is none that the type has, `force_variant` cannot compute the product, or A and B together exceed the
        227 KB that the largest supported architecture has.

    Notes
    -----
    Immutable, hashable and picklable: the object is the key of its type in Numba and of its code in every cache.
    float16 and bfloat16 accumulate in float32, every other type in itself.
    """

    m: int
    n: int
    k: int
    dtype: Any = np.float32
    a_order: str = "row"
    b_order: str = "row"
    c_order: str = "row"
    c_dtype: Any = None
    math: str = "ieee"
    threads: int = None  # type: ignore[assignment]  # the plan fills it in
    a_conj: bool = False
    b_conj: bool = False
    force_variant: str | None = None
    mainloop: bool = False

    def __post_init__(self) -> None:
        for name in ("m", "n", "k"):
            object.__setattr__(self, name, check_positive_integer(name, getattr(self, name)))
        for name in ("a_order", "b_order", "c_order"):
            check_choice(name, getattr(self, name), ORDERS)
        element = dtypes.lookup(self.dtype, "dtype", dtypes_of(GEMM_VARIANTS))
        choices = tuple(dict.fromkeys((element.accumulator, element.name)))
        result = dtypes.lookup(self.c_dtype or element.accumulator, "c_dtype", choices)
        check_choice("math", self.math, MATH)
        check_choice("mainloop", self.mainloop, (False, True))
        for name in ("a_conj", "b_conj"):
            check_choice(name, getattr(self, name), (False, True))
            object.__setattr__(self, name, bool(getattr(self, name)) and element.is_complex)
        if self.math != "ieee" and element.name != "float32":
            raise ValueError(f"math must be 'ieee' for {element.name}, got {self.math!r}")
        object.__setattr__(self, "dtype", element.numpy)
        object.__setattr__(self, "c_dtype", result.numpy)
        self._check_memory(element.itemsize)
        if self.threads is not None:
            threads = check_positive_integer("threads", self.threads)
            if threads % 32 or threads > 1024:
                raise ValueError(f"threads must be a multiple of 32 in 32..1024, got {threads}")
            object.__setattr__(self, "threads", threads)
        object.__setattr__(self, "threads", self.plan.threads)

    def __repr__(self) -> str:
        c_dtype = "" if self.c_dtype == self.accumulator_dtype else f", c_dtype={self.c_dtype}"
        columns = "".join(f", {x}_order='col'" for x in OPERANDS if getattr(self, f"{x}_order") == "col")
        math = "" if self.math == "ieee" else f", math={self.math!r}"
        conj = "".join(f", {x}_conj=True" for x in "ab" if getattr(self, f"{x}_conj"))
        forced = f", force_variant={self.force_variant!r}" if self.force_variant else ""
        mainloop = ", mainloop=True" if self.mainloop else ""
        fields = f"{self.dtype}{columns}{c_dtype}{math}{conj}{forced}{mainloop}, threads={self.threads}"
        return f"Gemm({self.m}, {self.n}, {self.k}, {fields})"

    def _check_memory(self, itemsize: int) -> None:
        """Refuse what no architecture can hold, before anything is planned."""
        needed = (self.m + self.n) * self.k * itemsize
        largest = max(targets.shared_memory_limit_bytes(name) for name in targets.ARCHITECTURES)
        if needed > largest:
            raise ValueError(
                f"m, n, k must leave A and B within {largest} bytes of shared memory, got {self.m}, {self.n}, {self.k}"
                f" which take {needed} bytes"
            )

    @property
    def plan(self) -> GemmPlan:
        """How the variant that every target runs lays out tiles and registers; the simulator's."""
        return self.plan_on(None)

    def plan_on(self, arch: str | None) -> GemmPlan:
        """How the variant in charge on a target, such as "sm_90a", lays out tiles and registers.

        Raises
        ------
        ValueError
            If `force_variant` names one that the target does not have.
        """
        return _plan(self, arch)

    def mainloop_on(self, arch: str | None) -> MainloopPlan:
        """How operands reach the tile on a target; None stands for the simulator.

        Raises
        ------
        ValueError
            If the descriptor was not made with ``mainloop=True``, or the target has too little shared memory.
        """
        if not self.mainloop:
            raise ValueError(f"the descriptor must be made with mainloop=True, got {self!r}")
        return plan_mainloop(self.plan_on(arch), arch)

    def block_threads_on(self, arch: str | None) -> int:
        """Threads of a block on a target: `threads`, and those that only load."""
        return self.mainloop_on(arch).threads if self.mainloop else self.threads

    def variant(self, arch: str) -> Choice:
        """Which variant computes this on a target, such as "sm_90a", on which units, and why.

        Returns
        -------
        Choice
            Its ``name``, ``unit`` and ``reason``; as text, all three.

        Raises
        ------
        ValueError
            If `arch` is no target that devmath knows, or lacks the one that `force_variant` names.
        """
        targets.compute_capability(arch)
        return explain(self._problem, arch, self.force_variant)

    @property
    def _problem(self) -> GemmProblem:
        element, result = dtypes.lookup(self.dtype), dtypes.lookup(self.c_dtype)
        return GemmProblem(
            m=self.m,
            n=self.n,
            k=self.k,
            a=element,
            b=element,
            c=result,
            accumulator=dtypes.BY_NAME[element.accumulator],
            orders=(self.a_order, self.b_order, self.c_order),
            threads=self.threads,
            math=self.math,
            conj=(self.a_conj, self.b_conj),
        )

    @property
    def accumulator_dtype(self) -> np.dtype:
        """Type of the sums, of `alpha` and of `beta`."""
        return dtypes.BY_NAME[dtypes.lookup(self.dtype).accumulator].numpy

    @property
    def a(self) -> "Operand":
        """The A tile, for `devmath.shared`."""
        return Operand(self, "a")

    @property
    def b(self) -> "Operand":
        """The B tile, for `devmath.shared`."""
        return Operand(self, "b")

    @property
    def c(self) -> "Operand":
        """The C tile, for `devmath.shared`."""
        return Operand(self, "c")

    @property
    def block_dim(self) -> tuple[int, int, int]:
        """Block to launch: ``kernel[grid, mm.block_dim]``; with ``mainloop=True`` it depends on the current device."""
        return (self.block_threads_on(front_end().current_arch()) if self.mainloop else self.threads, 1, 1)

    @property
    def launch_bounds(self) -> tuple[int, int]:
        """(threads a block, blocks a multiprocessor at least) that the verbs annotate the kernel with."""
        return (self.block_dim[0], 1)

    def grid(self, m: int, n: int) -> int:
        """Blocks to launch for C of m x n elements: those that run together on the current device, no more than tiles.

        Raises
        ------
        ValueError
            If the descriptor was not made with ``mainloop=True``, or an extent is negative.
        """
        for name, extent in (("m", m), ("n", n)):
            if extent < 0:
                raise ValueError(f"{name} must be >= 0, got {extent}")
        planned = self.mainloop_on(front_end().current_arch())
        resident = planned.blocks_per_multiprocessor * front_end().multiprocessors()
        return max(1, min(-(-m // self.m) * -(-n // self.n), resident))

    def operands(self, a: Any, b: Any, c: Any) -> tuple[Any, Any, Any]:
        """A, B and C as the kernel takes them fastest, for the arguments of a launch; the arrays must stay alive.

        On a device that copies by tensor maps each comes back with a map; else, and where a map cannot describe an
        array, all as they are. In the kernel they are arrays as before. A repeated call costs little.

        Parameters
        ----------
        a, b, c : array
            (m, k), (k, n) and (m, n), in memory of the current device: of Numba, CuPy, PyTorch, or anything with
            ``__cuda_array_interface__`` or DLPack.

        Raises
        ------
        TypeError
            If one is no such array, or of the wrong dtype.
        ValueError
            If the shapes do not fit each other, or an order is not that of the descriptor.
        """
        return front_end().operands(self, a, b, c)


@cache
def _plan(desc: Gemm, arch: str | None) -> GemmPlan:
    problem = desc._problem
    return select(problem, arch, desc.force_variant).plan(problem)


@dataclass(frozen=True)
class Operand(KernelConstant):
    """One of the three matrices of a descriptor: what `devmath.shared` makes a tile of.

    Parameters
    ----------
    desc : Gemm
        The descriptor.
    name : {"a", "b", "c"}
        Which of its matrices.
    """

    desc: Gemm
    name: str

    @property
    def layout(self) -> TileLayout:
        """Placement in shared memory, of the variant that every target runs."""
        return getattr(self.desc.plan, self.name)

    @property
    def dtype(self) -> np.dtype:
        """Element type."""
        return self.layout.dtype.numpy

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        return (self.layout.rows, self.layout.cols)

    @property
    def size_bytes(self) -> int:
        """Shared memory that the tile takes, padding included."""
        return self.layout.size_bytes


@Verb
def accumulator(desc: Gemm) -> Any:
    """Return this thread's share of C in registers, zeroed.

    Every thread of the block calls it. The result has ``size`` elements, read and written as ``acc[i]``;
    ``acc.row(i)`` and ``acc.col(i)`` say which element of the tile ``acc[i]`` is. Where `m` or `n` is no multiple of
    the instruction's shape some lie outside the tile: ``acc.in_bounds(i)`` tells, `devmath.apply` and
    `devmath.store` leave them out.

    Parameters
    ----------
    desc : Gemm

    Raises
    ------
    TypingError
        If the share of one thread is too large for registers; the message says how many threads would do.
    """


@Verb
def gemm(desc: Gemm, *operands: Any) -> Any:
    """Multiply tiles: ``gemm(desc, alpha, a, b, beta, c)`` or ``gemm(desc, a, b, acc)``.

    The first form computes ``c = alpha * a @ b + beta * c`` in shared memory; with ``beta == 0`` it never reads `c`.
    The second adds ``a @ b`` to an accumulator.

    Parameters
    ----------
    desc : Gemm
    alpha, beta : scalar
        Of the accumulator's type, or convertible to it.
    a, b, c : tile or array
        Tiles of `desc`, or ``cuda.shared.array``s: 2-D of the operand's shape (for order "col": of the transposed
        shape, as memory lies), or 1-D and dense.
    acc : accumulator or array
        From `devmath.accumulator`, or a ``cuda.local.array`` of ``acc.size`` elements.

    Raises
    ------
    TypingError
        If an operand is of the wrong kind, dtype, shape or descriptor.

    Notes
    -----
    Collective: every thread of the block calls it. It holds no barrier: `devmath.wait` before it makes the operands
    visible, `devmath.wait` after it lets others read `c`, or overwrite `a` and `b`.
    """
