"""The variants: which implementation serves which descriptor on which target, first match first.

A new variant is a header under ``include/devmath``, a module here with a function ``plan``, a row, and a test case.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import fft_plan, gemm_fma, gemm_mma_sync
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
    """

    name: str
    dtypes: frozenset[str]
    plan: Callable[..., Any]
    architectures: frozenset[str] = frozenset()
    serves: Callable[..., bool] | None = None

    def takes(self, dtype: str, arch: str | None, *problem: Any) -> bool:
        """Whether this row plans a descriptor for `arch`; None is a target of which nothing is known."""
        if dtype not in self.dtypes or (self.architectures and arch not in self.architectures):
            return False
        return self.serves is None or self.serves(*problem)


GEMM_VARIANTS = (
    Variant("mma_sync", frozenset({"float16", "bfloat16"}), gemm_mma_sync.plan),
    Variant("fma", frozenset({"float32", "float64", "complex64", "complex128"}), gemm_fma.plan),
)
FFT_VARIANTS = (Variant("stockham", frozenset({"complex64", "complex128"}), fft_plan.plan),)


def select(table: tuple[Variant, ...], dtype: str, arch: str | None = None, *problem: Any) -> Variant:
    """Return the first variant of `table` that takes `problem`, the arguments of its `plan`."""
    return next(variant for variant in table if variant.takes(dtype, arch, *problem))


def dtypes(table: tuple[Variant, ...]) -> tuple[str, ...]:
    """Return every element type that some variant of `table` computes with."""
    return tuple(sorted(set().union(*(variant.dtypes for variant in table))))


__all__ = ["FFT_VARIANTS", "GEMM_VARIANTS", "FFTPlan", "GemmPlan", "Variant", "dtypes", "select"]
