"""``devmath.Gemm``: the descriptor of matrix products inside a block, and the kernel verbs of its own."""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from . import dtypes
from .arguments import check_choice, check_positive_integer
from .gemm_launch import GemmLaunch
from .layouts import TileLayout, TilePerProduct
from .lto import arch as targets
from .lto import gemm_group
from .lto.variants import GEMM_VARIANTS, Choice, GemmPlan, GemmProblem, explain, fewest_threads, select
from .lto.variants import dtypes as dtypes_of
from .verbs import KernelConstant, Verb

ORDERS = ("row", "col")
OPERANDS = ("a", "b", "c")
MATH = ("ieee", "tf32", "3xtf32")


@dataclass(frozen=True)
class Gemm(GemmLaunch, KernelConstant):
    """Product ``C = alpha * A @ B + beta * C`` of tiles in shared memory, one or several a block.

    Parameters
    ----------
    m, n, k : int
        Extents in elements: A is (m, k), B is (k, n), C is (m, n). Any positive numbers whose A and B fit into shared
        memory.
    dtype : dtype, optional
        Element type of A, and of B unless `b_dtype` says otherwise: float16, bfloat16, float32, float64, complex64,
        complex128, int8, uint8, float8_e4m3fn or float8_e5m2; those that NumPy lacks by name or as of ``ml_dtypes``.
        Default float32.
    a_order, b_order, c_order : {"row", "col"}, optional
        How each tile lies in shared memory. Default "row". The arrays it is loaded from may have any strides. Tiles of
        A and B that tensor cores read with k along their lines only lie so: those of 8 bits, and on sm_90a those of
        float32 unless `math` is "ieee". For those the order is that of a plain ``cuda.shared.array`` in the tile's
        place, and `load` transposes as it must.
    c_dtype : dtype, optional
        Element type of a C tile: that of the accumulator (default), or a floating-point `dtype`, which is rounded to
        once. With float8 operands also float16 or bfloat16; float8 itself saturates.
    math : {"ieee", "tf32", "3xtf32"}, optional
        How float32 is multiplied: exactly as IEEE says, on FMA units (default); on tensor cores, which read the
        leading 11 bits of a number (tf32: an error below 2**-10 of each operand) and are several times faster; or on
        tensor cores in three parts, with float32's accuracy (its error is at most four times that of "ieee"). Every
        other type has "ieee" alone.
    threads : int, optional
        Threads of a block, a multiple of 32 up to 1024. Default: chosen from the extents, and `gemms_per_block`.
    a_conj, b_conj : bool, optional
        Multiply by the complex conjugate of A, of B: with a transposed view, ``load(x.T, sa)``, by the adjoint. No
        effect on real types. Default False.
    force_variant : str, optional
        Name of the variant to compute with, one of those that `variant` may return. Default: the fastest.
    b_dtype : dtype, optional
        Element type of B where it is another: int8 and uint8 mix, and so do the two float8 types. Default `dtype`.
    accumulator_dtype : dtype, optional
        Type of the sums, of `alpha` and of `beta`: float32 for all of 8 and 16 bits that is no integer, int32 for int8
        and uint8, else `dtype`. For float16 and float8 also float16: half the registers, on some GPUs twice the speed,
        but 11 bits of precision, and infinite beyond 65504.
    execution : {"block", "warp", "thread"}, optional
        Who computes a product: the whole block (default); some lanes of one warp, for small products of which a block
        computes many; or a single thread, for extents up to 8. The last two need no barrier of the block:
        ``devmath.wait(mm)`` keeps the lanes of a warp in step.
    gemms_per_block : int, optional
        Products that a block computes side by side, with `execution` "warp" or "thread": whole warps of them. Default:
        chosen from the extents. With "warp" and `threads` it also says how many lanes share a product.
    mainloop : bool, optional
        The extents are those of a tile of larger matrices, of any size: see `devmath.tiles`. `a_order` and `b_order`
        then say how the matrices lie in global memory. Default False.

    Raises
    ------
    TypeError
        If a dtype is none of the above, or an extent is no integer.
    ValueError
        If an extent is below 1, `threads` is no multiple of 32 in 32..1024, an order is neither "row" nor "col",
        `math` is none that the type has, `force_variant` cannot compute the product, a warp or a thread cannot hold C,
        `gemms_per_block` makes no whole warps, or A and B of a block's products exceed the 227 KB that the largest
        supported architecture has.

    Notes
    -----
    Immutable, hashable and picklable: the object is the key of its type in Numba and of its code in every cache.
    Sums of integers wrap around beyond 32 bits, and so does their product with the integers `alpha` and `beta`. Sums of
    float8 keep about 14 bits on sm_90a: each 32 products lose what is below 2**-13 of the largest number among them and
    the sum so far.
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
    b_dtype: Any = None
    accumulator_dtype: Any = None
    execution: str = "block"
    gemms_per_block: int = None  # type: ignore[assignment]  # chosen where it is not given
    mainloop: bool = False

    def __post_init__(self) -> None:
        for name in ("m", "n", "k"):
            object.__setattr__(self, name, check_positive_integer(name, getattr(self, name)))
        for name in ("a_order", "b_order", "c_order"):
            check_choice(name, getattr(self, name), ORDERS)
        element = dtypes.lookup(self.dtype, "dtype", dtypes_of(GEMM_VARIANTS))
        other = dtypes.lookup(self.b_dtype or element, "b_dtype", (element.name, *element.partners))
        sums = dtypes.lookup(self.accumulator_dtype or element.accumulator, "accumulator_dtype", _sum_types(element))
        result = dtypes.lookup(self.c_dtype or sums, "c_dtype", _result_types(element, other, sums))
        check_choice("math", self.math, MATH)
        check_choice("mainloop", self.mainloop, (False, True))
        for name in ("a_conj", "b_conj"):
            check_choice(name, getattr(self, name), (False, True))
            object.__setattr__(self, name, bool(getattr(self, name)) and element.is_complex)
        if self.math != "ieee" and element.name != "float32":
            raise ValueError(f"math must be 'ieee' for {element.name}, got {self.math!r}")
        rows = {"dtype": element, "b_dtype": other, "accumulator_dtype": sums, "c_dtype": result}
        for name, row in rows.items():
            object.__setattr__(self, name, row.numpy)
        self._check_memory(element.itemsize, 1)
        for name in ("threads", "gemms_per_block"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, check_positive_integer(name, getattr(self, name)))
        if self.threads is not None and (self.threads % 32 or self.threads > 1024):
            raise ValueError(f"threads must be a multiple of 32 in 32..1024, got {self.threads}")
        check_choice("execution", self.execution, gemm_group.EXECUTIONS)
        if self.mainloop and self.execution != "block":
            raise ValueError(f"execution must be 'block' with mainloop=True, got {self.execution!r}")
        if self.execution == "block":
            if self.gemms_per_block not in (None, 1):
                raise ValueError(f"gemms_per_block must be 1 with execution='block', got {self.gemms_per_block}")
            object.__setattr__(self, "gemms_per_block", 1)
            object.__setattr__(self, "threads", self.plan.threads)
        else:
            self._share_block(element)

    def __repr__(self) -> str:
        b_dtype = "" if self.b_dtype == self.dtype else f", b_dtype={self.b_dtype}"
        c_dtype = "" if self.c_dtype == self.accumulator_dtype else f", c_dtype={self.c_dtype}"
        columns = "".join(f", {x}_order='col'" for x in OPERANDS if getattr(self, f"{x}_order") == "col")
        math = "" if self.math == "ieee" else f", math={self.math!r}"
        conj = "".join(f", {x}_conj=True" for x in "ab" if getattr(self, f"{x}_conj"))
        forced = f", force_variant={self.force_variant!r}" if self.force_variant else ""
        mainloop = ", mainloop=True" if self.mainloop else ""
        is_usual = self.accumulator_dtype.name == dtypes.lookup(self.dtype).accumulator
        sums = "" if is_usual else f", accumulator_dtype={self.accumulator_dtype}"
        shared = f"execution={self.execution!r}, gemms_per_block={self.gemms_per_block}, "
        block = ("" if self.execution == "block" else shared) + f"threads={self.threads}"
        fields = f"{self.dtype}{b_dtype}{columns}{sums}{c_dtype}{math}{conj}{forced}{mainloop}, {block}"
        return f"Gemm({self.m}, {self.n}, {self.k}, {fields})"

    def _check_memory(self, itemsize: int, products: int) -> None:
        """Refuse what no architecture can hold, before anything is planned."""
        needed = (self.m + self.n) * self.k * itemsize * products
        largest = max(targets.shared_memory_limit_bytes(name) for name in targets.ARCHITECTURES)
        if needed > largest:
            several = f" for {products} products a block" if products > 1 else ""
            raise ValueError(
                f"m, n, k must leave A and B within {largest} bytes of shared memory, got {self.m}, {self.n}, {self.k}"
                f" which take {needed} bytes{several}"
            )

    def _share_block(self, element: dtypes.DType) -> None:
        """Divide the threads of a block among products, each of which lies within a warp."""
        limit = gemm_group.MAX_EXTENT_OF_THREAD
        if self.execution == "thread" and max(self.m, self.n, self.k) > limit:
            raise ValueError(
                f"m, n, k must be at most {limit} with execution='thread', got {self.m}, {self.n}, {self.k}"
            )
        fewest = fewest_threads(self._problem, self.force_variant)
        product_bytes = (self.m + self.n) * self.k * element.itemsize
        each = gemm_group.threads_per_gemm(self.execution, self.m, self.n, fewest, product_bytes)
        if each < fewest:
            raise ValueError(
                f"execution must be 'block' or 'warp' for a product of {element.name} on tensor cores, got 'thread'"
            )
        if self.threads and self.gemms_per_block:
            each = gemm_group.threads_asked_for(self.execution, self.threads, self.gemms_per_block, fewest)
        count = gemm_group.gemms_per_block(each, self.gemms_per_block, self.threads, product_bytes)
        object.__setattr__(self, "gemms_per_block", count)
        object.__setattr__(self, "threads", count * each)
        self._check_memory(element.itemsize, count)
        if problem := self.plan.register_form_problem:
            raise ValueError(f"m, n must leave C to one {self.execution}, got {self.m}, {self.n}: {problem}")

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
        return GemmProblem(
            m=self.m,
            n=self.n,
            k=self.k,
            a=dtypes.lookup(self.dtype),
            b=dtypes.lookup(self.b_dtype),
            c=dtypes.lookup(self.c_dtype),
            accumulator=dtypes.lookup(self.accumulator_dtype),
            orders=(self.a_order, self.b_order, self.c_order),
            threads=self.threads and self.threads // (self.gemms_per_block or 1),
            math=self.math,
            conj=(self.a_conj, self.b_conj),
            gemms_per_block=self.gemms_per_block or 1,
        )

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


def _sum_types(a: dtypes.DType) -> tuple[str, ...]:
    """Names of the types that sums of products may have."""
    return (a.accumulator, "float16") if a.name == "float16" or a.name.startswith("float8") else (a.accumulator,)


def _result_types(a: dtypes.DType, b: dtypes.DType, sums: dtypes.DType) -> tuple[str, ...]:
    """Names of the types that C may have."""
    if a.is_integer:
        return (sums.name,)
    narrow = ("float16", "bfloat16") if a.itemsize == 1 else ()
    return tuple(dict.fromkeys((sums.name, *narrow, a.name, b.name)))


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
    is_common : bool, optional
        Whether all products of a block share the tile. Default False.
    """

    desc: Gemm
    name: str
    is_common: bool = False

    @property
    def common(self) -> "Operand":
        """One tile for all products of a block, such as weights: loaded and waited for by the whole block."""
        return replace(self, is_common=True)

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
        """Shared memory that the tile takes, padding included; or those of all products of the block."""
        per_product = self.per_product_on(None)
        return per_product.size_bytes if per_product else self.layout.size_bytes

    def per_product_on(self, arch: str | None) -> TilePerProduct | None:
        """Where the tiles of a block's products lie on a target; None where there is one tile for the block."""
        if self.desc.execution == "block" or self.is_common:
            return None
        return gemm_group.tile_per_product(self.desc.plan_on(arch), self.name)


@Verb
def gemm_index(desc: Gemm) -> Any:
    """Return which product of a batch this thread works on: ``blockIdx.x * gemms_per_block`` + that in the block.

    With `execution` "block" that is ``blockIdx.x``. In the last block of a grid it may lie past the end of the batch:
    `devmath.load` then loads zeros, `devmath.store` stores nothing.

    Parameters
    ----------
    desc : Gemm
    """


@Verb
def gemm(desc: Gemm, *operands: Any) -> Any:
    """Multiply tiles: ``gemm(desc, alpha, a, b, beta, c)`` or ``gemm(desc, a, b, acc)``.

    The first form computes ``c = alpha * a @ b + beta * c`` in shared memory; with ``beta == 0`` it never reads `c`.
    The second adds ``a @ b`` to an accumulator; there `a` may be an accumulator too.

    Parameters
    ----------
    desc : Gemm
    alpha, beta : scalar
        Of the accumulator's type, or convertible to it.
    a, b, c : tile or array
        Tiles of `desc`, or ``cuda.shared.array``s: 2-D of the operand's shape (for order "col": of the transposed
        shape, as memory lies), or 1-D and dense. A 2-D one may be larger, or a view whose lines are consecutive
        elements, such as ``buffer[:, 4:36]``. In the second form `a` may be the accumulator of another product of the
        shape (m, k), as `devmath.convert` makes it where the sums are not of the dtype of A.
    acc : accumulator or array
        From `devmath.accumulator`, or a ``cuda.local.array`` of ``acc.size`` elements.

    Raises
    ------
    TypingError
        If an operand is of the wrong kind, dtype, shape or descriptor.

    Notes
    -----
    Collective: every thread of the block calls it; with `execution` "warp" or "thread" every thread of the warp. It
    holds no barrier to rely on: `devmath.wait` before it makes the operands visible, `devmath.wait` after it lets
    others read `c`, or overwrite `a` and `b`.
    An accumulator as `a` is read where it is if it lies as the instructions take it, else through shared memory.
    """
