"""Accumulators in kernels: where they come from, conversion to another dtype, reductions along rows and columns."""

from typing import Any

from .blas_device import Gemm
from .verbs import Verb


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
def convert(acc: Any, dtype: Any) -> Any:
    """Return the elements of an accumulator in another dtype, each rounded once.

    The result lies in registers as `acc` does and is used like it: indexed, stored, changed by `devmath.apply`,
    reduced; and it can be the A operand of a product of its dtype.

    Parameters
    ----------
    acc : accumulator
    dtype : dtype
        Such as ``np.float16`` or ``mm.dtype``; real for real, complex for complex.
    """


@Verb
def row_max(acc: Any) -> Any:
    """Return the largest element of each row, as a row vector.

    Parameters
    ----------
    acc : accumulator
        Of a real dtype. Elements outside the tile do not take part.

    Returns
    -------
    row vector
        This thread's share of one value a row, in registers, of the accumulator's type of the dtype: ``r[i]`` is the
        value of the row that ``acc[i]`` lies in, to read or to set. `devmath.apply` changes all of it at once, and
        takes it as an argument of the function that changes an accumulator.

    Notes
    -----
    Collective: every thread of the block calls it. It needs no `devmath.wait` before or after. NaN in a row makes its
    result NaN, as NumPy has it.

    As with an accumulator, the registers are the same at each run of the same line: what is to outlive the next run is
    copied to another vector by `devmath.apply`, not by giving it another name.
    """


@Verb
def row_min(acc: Any) -> Any:
    """Return the least element of each row, as a row vector; else like `row_max`."""


@Verb
def row_sum(acc: Any) -> Any:
    """Return the sum of each row, as a row vector; of a complex dtype too, else like `row_max`."""


@Verb
def col_max(acc: Any) -> Any:
    """Return the largest element of each column, as a column vector: ``r[i]`` of the column of ``acc[i]``.

    Else like `row_max`.
    """


@Verb
def col_min(acc: Any) -> Any:
    """Return the least element of each column, as a column vector; else like `row_max`."""


@Verb
def col_sum(acc: Any) -> Any:
    """Return the sum of each column, as a column vector; of a complex dtype too, else like `row_max`."""


@Verb
def row_vector(desc: Gemm, values: Any) -> Any:
    """Return a value for each row of a product, in registers: a constant, or a row vector of another product.

    Parameters
    ----------
    desc : Gemm
        Whose accumulators it goes with.
    values : scalar or row vector
        A vector has the rows of `desc`; it is dealt out anew where `desc` deals out its rows differently.

    Notes
    -----
    Collective where it is given a vector: every thread of the block calls it.
    """


@Verb
def col_vector(desc: Gemm, values: Any) -> Any:
    """Return a value for each column of a product; else like `row_vector`."""


REDUCTIONS = (row_max, row_min, row_sum, col_max, col_min, col_sum)
VECTORS = (row_vector, col_vector)
