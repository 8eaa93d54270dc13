"""The variants: which implementation serves which descriptor on which target, first match first.

A new variant is a header under ``include/devmath``, a module here with a function ``plan``, a row, and a test case.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import (
    fft_plan,
    gemm_fma,
    gemm_mma_f64,
    gemm_mma_sync,
    gemm_mma_tf32,
    gemm_wgmma,
    gemm_wgmma_tf32,
    gemm_wgmma_tiling,
)
from .fft_plan import FFTPlan
from .gemm_plan import WARP, GemmPlan, GemmProblem


@dataclass(frozen=True)
class Variant:
    """One row of a table.

    Parameters
    ----------
    name : str
        Also the stem of its header and of its Python module.
    unit : str
        What it computes on, for people.
    dtypes : frozenset of str
        Element types that it computes with.
    plan : callable
        From a problem to a plan: thread and register tiling, layouts, C++ template arguments.
    architectures : frozenset of str, optional
        Targets that it runs on; empty for all.
    fast_on : frozenset of str, optional
        Targets on which its units are faster than those of the next variant; empty for all.
    obstacle, drawback : callable, optional
        From a problem to the reason why the variant cannot compute it, and why another one is better: the end of a
        sentence, or None. By default there is neither.
    math : tuple of str, optional
        How it multiplies float32: "ieee" as its arithmetic says, or ways that a descriptor must ask for.
    fewest_threads : int, optional
        The fewest that can share a product. Default 32.
    """

    name: str
    unit: str
    dtypes: frozenset[str]
    plan: Callable[..., Any]
    architectures: frozenset[str] = frozenset()
    fast_on: frozenset[str] = frozenset()
    obstacle: Callable[[GemmProblem], str | None] | None = None
    drawback: Callable[[GemmProblem], str | None] | None = None
    math: tuple[str, ...] = ("ieee",)
    fewest_threads: int = WARP

    def is_for(self, problem: GemmProblem) -> bool:
        """Whether it computes with such numbers at all."""
        return {problem.a.name, problem.b.name} <= self.dtypes and problem.math in self.math

    def impediment(self, problem: GemmProblem, arch: str | None) -> str | None:
        """Why it cannot compute a problem on `arch`; None where it can. Of the target None nothing is known."""
        if self.architectures and arch not in (None, *self.architectures):
            return f"it runs on {', '.join(sorted(self.architectures))}, not on {arch}"
        if problem.threads and problem.threads < self.fewest_threads:
            return f"it takes {self.fewest_threads} threads or more a product, not {problem.threads}"
        return self.obstacle(problem) if self.obstacle else None

    def refusal(self, problem: GemmProblem, arch: str | None) -> str | None:
        """Why it does not serve a problem on `arch`, where nobody forces it; None where it does."""
        if arch is None and (self.architectures or self.fast_on):
            return "not every target has it"
        if self.fast_on and arch not in self.fast_on:
            return f"its units are no faster on {arch}"
        return self.impediment(problem, arch) or (self.drawback(problem) if self.drawback else None)


@dataclass(frozen=True)
class Choice:
    """Which variant serves a descriptor on a target, and why.

    Parameters
    ----------
    name : str
        Name of the variant.
    unit : str
        What it computes on.
    reason : str
        Why it serves, and why those before it do not: a sentence.
    """

    name: str
    unit: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name} ({self.unit}): {self.reason}"


GEMM_VARIANTS = (
    Variant(
        "wgmma",
        "tensor cores, a warpgroup at a time",
        frozenset(gemm_wgmma.DTYPES),
        gemm_wgmma.plan,
        frozenset(gemm_wgmma_tiling.ARCHITECTURES),
        obstacle=gemm_wgmma.obstacle,
        drawback=gemm_wgmma.drawback,
    ),
    Variant("mma_sync", "tensor cores, a warp at a time", frozenset(gemm_mma_sync.DTYPES), gemm_mma_sync.plan),
    Variant(
        "mma_f64",
        "tensor cores, a warp at a time",
        frozenset(gemm_mma_f64.DTYPES),
        gemm_mma_f64.plan,
        # Elsewhere the tensor cores have no more float64 than the FMA units.
        fast_on=frozenset({"sm_80", "sm_90a", "sm_100a"}),
        drawback=gemm_mma_f64.drawback,
    ),
    Variant(
        "wgmma_tf32",
        "tensor cores, a warpgroup at a time",
        frozenset(gemm_wgmma_tf32.DTYPES),
        gemm_wgmma_tf32.plan,
        frozenset(gemm_wgmma_tiling.ARCHITECTURES),
        obstacle=gemm_wgmma_tf32.obstacle,
        drawback=gemm_wgmma_tf32.drawback,
        math=("tf32", "3xtf32"),
    ),
    Variant(
        "mma_tf32",
        "tensor cores, a warp at a time",
        frozenset(gemm_mma_tf32.DTYPES),
        gemm_mma_tf32.plan,
        math=("tf32", "3xtf32"),
    ),
    Variant("fma", "FMA units", frozenset(gemm_fma.DTYPES), gemm_fma.plan, fewest_threads=1),
)
FFT_VARIANTS = (Variant("stockham", "FMA units", frozenset({"complex64", "complex128"}), fft_plan.plan),)


def transform_variant(dtype: str) -> Variant:
    """Return the variant that transforms an element type."""
    return next(variant for variant in FFT_VARIANTS if dtype in variant.dtypes)


def candidates(problem: GemmProblem) -> tuple[Variant, ...]:
    """Variants that compute with the numbers of a problem, the fastest first."""
    return tuple(variant for variant in GEMM_VARIANTS if variant.is_for(problem))


def select(problem: GemmProblem, arch: str | None = None, forced: str | None = None) -> Variant:
    """Return the first variant that serves a problem on `arch`, or the one that is `forced`.

    Raises
    ------
    ValueError
        If the forced one cannot compute it there.
    """
    if forced is None:
        return next(variant for variant in candidates(problem) if variant.refusal(problem, arch) is None)
    named = {variant.name: variant for variant in candidates(problem)}
    if forced not in named:
        raise ValueError(f"force_variant must be one of {', '.join(named)} for {problem.a.name}, got {forced!r}")
    if why := named[forced].impediment(problem, arch):
        raise ValueError(f"force_variant must be able to compute the product, got {forced!r}: {why}")
    return named[forced]


def fewest_threads(problem: GemmProblem, forced: str | None = None) -> int:
    """Return the fewest threads that can share a product, by any variant or by the one that is `forced`."""
    able = (variant.fewest_threads for variant in candidates(problem) if forced in (None, variant.name))
    return min(able, default=WARP)


def explain(problem: GemmProblem, arch: str | None = None, forced: str | None = None) -> Choice:
    """Say which variant `select` returns, and why."""
    chosen = select(problem, arch, forced)
    if forced is not None:
        return Choice(chosen.name, chosen.unit, "force_variant names it")
    tried = candidates(problem)
    earlier = tried[: tried.index(chosen)]
    if not earlier:
        return Choice(chosen.name, chosen.unit, f"the fastest for {problem.a.name}")
    reasons = "; ".join(f"{variant.name} does not serve: {variant.refusal(problem, arch)}" for variant in earlier)
    return Choice(chosen.name, chosen.unit, reasons)


def dtypes(table: tuple[Variant, ...]) -> tuple[str, ...]:
    """Return every element type that some variant of `table` computes with."""
    return tuple(sorted(set().union(*(variant.dtypes for variant in table))))


__all__ = [
    "FFT_VARIANTS",
    "GEMM_VARIANTS",
    "Choice",
    "FFTPlan",
    "GemmPlan",
    "GemmProblem",
    "Variant",
    "candidates",
    "dtypes",
    "explain",
    "fewest_threads",
    "select",
    "transform_variant",
]
