"""The variants: which implementation serves which descriptor on which target, first match first.

A new variant is a header under ``include/devmath``, a module here with a function ``plan``, a row, and a test case.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from . import fft_plan, gemm_fma, gemm_mma_f64, gemm_mma_sync, gemm_mma_tf32, gemm_wgmma
from .fft_plan import FFTPlan
from .gemm_plan import GemmPlan


@dataclass(frozen=True)
class Variant:
    """One row of a table.

    Parameters
    ----------
    name : str
        Also the stem of its header and of its Python module.
    dtypes : frozenset of str
        Element types that it computes with.
    plan : callable
        From the fields of a descriptor to a plan: thread and register tiling, layouts, C++ template arguments.
    architectures : frozenset of str, optional
        Targets that it runs on; empty for all.
    serves : callable, optional
        Whether it takes a descriptor, from the arguments of `plan`; it takes every one by default.
    math : str, optional
        How it multiplies float32: "ieee" as its arithmetic says, or a way that a descriptor must ask for.
    """

    name: str
    dtypes: frozenset[str]
    plan: Callable[..., Any]
    architectures: frozenset[str] = frozenset()
    serves: Callable[..., bool] | None = None
    math: str = "ieee"

    def takes(self, dtype: str, math: str, arch: str | None, *problem: Any) -> bool:
        """Whether this row plans a descriptor for `arch`; None is a target of which nothing is known."""
        if dtype not in self.dtypes or math != self.math or (self.architectures and arch not in self.architectures):
            return False
        return self.serves is None or self.serves(*problem)


GEMM_VARIANTS = (
    Variant(
        "wgmma",
        frozenset(gemm_wgmma.DTYPES),
        gemm_wgmma.plan,
        frozenset(gemm_wgmma.ARCHITECTURES),
        gemm_wgmma.serves,
    ),
    Variant("mma_sync", frozenset(gemm_mma_sync.DTYPES), gemm_mma_sync.plan),
    Variant(
        "mma_f64",
        frozenset(gemm_mma_f64.DTYPES),
        gemm_mma_f64.plan,
        # Elsewhere the tensor cores have no more float64 than the FMA units.
        frozenset({"sm_80", "sm_90a", "sm_100a"}),
        gemm_mma_f64.serves,
    ),
    Variant("mma_tf32", frozenset({"float32"}), partial(gemm_mma_tf32.plan, terms=1), math="tf32"),
    Variant("mma_tf32", frozenset({"float32"}), partial(gemm_mma_tf32.plan, terms=3), math="3xtf32"),
    Variant("fma", frozenset(gemm_fma.DTYPES), gemm_fma.plan),
)
FFT_VARIANTS = (Variant("stockham", frozenset({"complex64", "complex128"}), fft_plan.plan),)


def select(
    table: tuple[Variant, ...], dtype: str, *problem: Any, math: str = "ieee", arch: str | None = None
) -> Variant:
    """Return the first variant of `table` that takes `problem`, the arguments of its `plan`."""
    return next(variant for variant in table if variant.takes(dtype, math, arch, *problem))


def dtypes(table: tuple[Variant, ...]) -> tuple[str, ...]:
    """Return every element type that some variant of `table` computes with."""
    return tuple(sorted(set().union(*(variant.dtypes for variant in table))))


__all__ = ["FFT_VARIANTS", "GEMM_VARIANTS", "FFTPlan", "GemmPlan", "Variant", "dtypes", "select"]
