"""Which threads hold what of C."""

import numpy as np

from devmath.lto.gemm_plan import GemmPlan


def assert_held_once(gemm: GemmPlan, m: int, n: int) -> None:
    """Every one of the m x n elements of C is in one register of one thread."""
    assert holders(gemm).shape == (m, n)
    assert (holders(gemm) == 1).all()


def holders(gemm: GemmPlan) -> np.ndarray:
    """Registers, of all threads of the block, that hold each of the m x n elements of C."""
    where = np.indices((gemm.threads, gemm.fragment.size))
    inside = gemm.fragment.in_bounds(*where)
    count = np.zeros((gemm.problem.m, gemm.problem.n), int)
    np.add.at(count, (gemm.fragment.row(*where)[inside], gemm.fragment.col(*where)[inside]), 1)
    return count
