"""Kernel verbs: what they are, and those that products and transforms share.

A verb is called in a ``@cuda.jit`` kernel, where a front end gives it a type and code, or in the simulator, where it
runs the body that the front end installed. Anywhere else it raises. The front end is loaded when Numba, or a call,
first asks: `devmath` itself imports no compiler.
"""

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from .errors import DeviceOnlyError

#: Bodies of the verbs by name, installed by the simulator; empty where kernels are compiled.
SIMULATED: dict[str, Callable[..., Any]] = {}

_loaders: list[Callable[[], ModuleType]] = []


def use_front_end(load: Callable[[], ModuleType]) -> None:
    """Name the function that imports the front end for what Numba is set to: its compiler or its simulator."""
    _loaders[:] = [load]


def front_end() -> ModuleType:
    """The front end for what Numba is set to."""
    return _loaders[0]()


class KernelConstant:
    """What a kernel may name: Numba asks such an object itself for its type."""

    @property
    def _numba_type_(self) -> Any:
        return front_end().type_of(self)


class Verb(KernelConstant):
    """A device function of devmath, documented by the Python function that it is made of."""

    def __init__(self, function: Callable[..., Any]):
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        name = self.__name__
        front_end()
        if name not in SIMULATED:
            raise DeviceOnlyError(f"devmath.{name} can only be called inside a @cuda.jit kernel")
        return SIMULATED[name](*args, **keywords)

    def __repr__(self) -> str:
        return f"devmath.{self.__name__}"

    __name__: str


@Verb
def shared(operand: Any, stages: int | None = None) -> Any:
    """Return a tile in shared memory: the same at each run of the same line.

    There is one tile for the whole block, or one for each product where the descriptor's `execution` is not "block".
    ``t[i, j]`` reads and writes element (i, j) whatever the layout; ``t.shape`` is its extents. Contents are undefined
    until `devmath.load` or assignments. Memory beyond 48 KB needs nothing from the caller.

    Parameters
    ----------
    operand : Operand or FFT
        ``mm.a``, ``mm.b`` or ``mm.c`` of a `Gemm`, with several products a block one tile for each, unless it is
        ``mm.a.common`` or ``mm.b.common``; or an `FFT`: its block's transforms, (ffts_per_block, n).
    stages : int, optional
        Return a stack of so many tiles: ``stack[s]`` is a tile for any integer s in 0 .. stages - 1, and
        ``stack.stages``, also ``len(stack)``, is their number. At least 1, and known while compiling. One stage is
        loaded while others are multiplied: `devmath.wait` says how.

    Raises
    ------
    TypingError
        If the tiles of a kernel exceed the shared memory of the target architecture.
    """


@Verb
def load(source: Any, target: Any, *row: Any) -> Any:
    """Copy from an array: ``load(array, tile)``, ``load(array, acc)``, ``load(array, v, row)``; or ``load(tile, acc)``.

    A tile and an accumulator take the corner of `array` that they cover; elements past the array's edge become zero.
    From a batch of matrices, a 3-D array, ``load(array, tile, i)`` takes matrix i, or zeros where there is none.
    Registers take row `row` of a 2-D array (of a 1-D array: the one row 0); rows past the end, and elements past the
    row's end, become zero. Any strides.

    Parameters
    ----------
    source : array in global memory, or tile
        A tile is for an accumulator, and of its shape. Of the target's dtype; for an accumulator of any dtype that
        converts: real for real, complex for complex.
    target : tile, accumulator or registers
    row : int
        For registers: which row, `devmath.transform_index` as a rule. For a 3-D array: which of its matrices,
        `devmath.gemm_index` as a rule.

    Notes
    -----
    Every thread of the block calls it; for the tile of one of a block's products, every thread of the warp. Copies
    into a tile are asynchronous: `devmath.wait` before any read. Each such load counts as one in ``wait(pending=n)``,
    whatever it copies: past the array's end it writes zeros and counts too. An accumulator is loaded at once; from a
    tile that others have written `devmath.wait` comes before.
    """


@Verb
def store(source: Any, target: Any, *row: Any) -> Any:
    """Copy to an array: ``store(tile, array)``, ``store(acc, array)``, ``store(acc, tile)``, ``store(v, array, row)``.

    To a batch of matrices, a 3-D array: ``store(tile, array, i)``, ``store(acc, array, i)``. Elements past the array's
    edge are left out, and matrices past its end. Real elements are converted to the array's real dtype, complex ones
    to its complex dtype, each rounded once.

    Parameters
    ----------
    source : tile, accumulator or registers
    target : array in global memory, or tile (of an accumulator)
    row : int
        For the registers of a transform: which row. For a 3-D array: which of its matrices. For an accumulator it may
        be a tile of `devmath.tiles`, ``store(acc, array, t)``: the part of the array that is stored to.

    Notes
    -----
    Every thread of the block calls it; for the tile of one of a block's products, every thread of the warp. A tile
    must be complete: `devmath.wait` comes between writing and storing it. An accumulator goes out by 16-byte accesses,
    whatever its layout, where the rows of the array, or its columns, are contiguous, begin at multiples of 16 bytes and
    are of whole such accesses. Threads store for one another then: `devmath.wait` comes before reading the array.
    """


@Verb
def wait(desc: Any = None, pending: int = 0) -> Any:
    """Wait until this block's loads have landed and all its threads are here. The one barrier of kernel code.

    Parameters
    ----------
    desc : Gemm, optional
        Where its `execution` is not "block": wait for the threads of this warp and their loads only, so that other
        warps need not be here, or ever call it.
    pending : int, optional
        The newest `pending` loads into tiles may be under way still; all older ones have landed. Known while compiling.
        Default 0: all have. It counts calls of `devmath.load`, not stages: two for a stage of A and of B.

    Notes
    -----
    Stages overlap loads with products. A stage is loaded over once every thread is done with it, and one wait a step
    sees to that as well as to the loads, if the loads of a step follow it::

        sa, sb = devmath.shared(mm.a, stages=3), devmath.shared(mm.b, stages=3)
        for s in range(2):                              # all stages but one
            devmath.load(a[:, s * K:], sa[s]); devmath.load(b[s * K:, :], sb[s])
        for t in range(steps):
            devmath.wait(pending=2)                     # stage t has landed, the two loads of stage t + 1 may not have
            ahead = t + 2                               # past the end these loads write zeros, and count
            devmath.load(a[:, ahead * K:], sa[ahead % 3]); devmath.load(b[ahead * K:, :], sb[ahead % 3])
            devmath.gemm(mm, sa[t % 3], sb[t % 3], acc)
        devmath.wait()

    The loads of step t go to the stage that step t - 1 multiplied, and the wait of step t is between. With S stages it
    is ``pending=2 * (S - 2)``: with two stages plain ``wait()``.
    """


@Verb
def apply(function: Any, acc: Any, *extra: Any) -> Any:
    """Replace every element: ``acc[i] = function(acc[i], row, col, *extra)``.

    Unrolled while the kernel is lowered, so that an accumulator of any size stays in registers. Elements outside the
    tile are left out: `function` may index by row and column without a check.

    Of a row vector, or a column vector, every value is replaced: ``r = function(value, row, *extra)``. Several threads
    hold one value each of the same row: `function` runs in all of them.

    Parameters
    ----------
    function : device function
        A ``@cuda.jit(device=True)`` function; row and col are counted in the tile, or after ``apply(function, acc, t,
        *extra)`` with a tile of `devmath.tiles` in the matrices, and elements outside of those are left out too.
    acc : accumulator, row vector or column vector
    *extra
        Passed on as they are, but vectors: of those `function` gets the value of the element's row or column. The
        product that a vector comes from must deal out its rows as that of `acc` does; `devmath.row_vector` takes care.
    """
