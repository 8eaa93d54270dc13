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

    def __call__(self, *args: Any) -> Any:
        name = self.__name__
        front_end()
        if name not in SIMULATED:
            raise DeviceOnlyError(f"devmath.{name} can only be called inside a @cuda.jit kernel")
        return SIMULATED[name](*args)

    def __repr__(self) -> str:
        return f"devmath.{self.__name__}"

    __name__: str


@Verb
def shared(operand: Any) -> Any:
    """Return a tile in shared memory, one for the whole block: the same at each run of the same line.

    ``t[i, j]`` reads and writes element (i, j) whatever the layout; ``t.shape`` is its extents. Contents are undefined
    until `devmath.load` or assignments. Memory beyond 48 KB needs nothing from the caller.

    Parameters
    ----------
    operand : Operand or FFT
        ``mm.a``, ``mm.b`` or ``mm.c`` of a `Gemm`; or an `FFT`: its block's transforms, (ffts_per_block, n).

    Raises
    ------
    TypingError
        If the tiles of a kernel exceed the shared memory of the target architecture.
    """


@Verb
def load(source: Any, target: Any, *row: Any) -> Any:
    """Copy from an array: ``load(array, tile)``, or ``load(array, v, row)`` for the registers of a transform.

    A tile takes the corner of `array` that it covers; elements past the array's edge become zero. Registers take row
    `row` of a 2-D array (of a 1-D array: the one row 0); rows past the end, and elements past the row's end, become
    zero. Any strides.

    Parameters
    ----------
    source : array
        In global memory, of the target's dtype.
    target : tile or registers
    row : int
        For registers only: which row, `devmath.transform_index` as a rule.

    Notes
    -----
    Every thread of the block calls it. Copies into a tile are asynchronous: `devmath.wait` before any read.
    """


@Verb
def store(source: Any, target: Any, *row: Any) -> Any:
    """Copy to an array: ``store(tile, array)``, ``store(acc, array)``, ``store(acc, tile)``, ``store(v, array, row)``,
    ``store(acc, array, t)``.

    Elements past the array's edge are left out. Real elements are converted to the array's real dtype, complex ones
    to its complex dtype, each rounded once.

    Parameters
    ----------
    source : tile, accumulator or registers
    target : array in global memory, or tile (of an accumulator)
    row : int or tile of `devmath.tiles`
        For the registers of a transform the row; for an accumulator optionally where in the array its tile lies.

    Notes
    -----
    Every thread of the block calls it. A tile must be complete: `devmath.wait` comes between writing and storing it.
    """


@Verb
def wait() -> Any:
    """Wait until this block's loads have landed and all its threads are here. The one barrier of kernel code."""


@Verb
def apply(function: Any, acc: Any, *extra: Any) -> Any:
    """Replace every element: ``apply(function, acc, *extra)`` is ``acc[i] = function(acc[i], row, col, *extra)``.

    Unrolled while the kernel is lowered, so that an accumulator of any size stays in registers. Elements outside the
    tile are left out: `function` may index by row and column without a check.

    Parameters
    ----------
    function : device function
        A ``@cuda.jit(device=True)`` function; row and col are counted in the tile, or after ``apply(function, acc, t,
        *extra)`` with a tile of `devmath.tiles` in the matrices, and elements outside of those are left out too.
    acc : accumulator
    *extra
        Passed on as they are.
    """
