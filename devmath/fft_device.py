"""``devmath.FFT``: the descriptor of block-level Fourier transforms, and the kernel verbs of its own."""

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from . import dtypes
from .arguments import check_choice, check_positive_integer
from .fragments import Digits, FragmentMap
from .layouts import TileLayout
from .lto.variants import FFT_VARIANTS, FFTPlan, transform_variant
from .lto.variants import dtypes as dtypes_of
from .verbs import KernelConstant, Verb

DIRECTIONS = ("forward", "inverse")


@dataclass(frozen=True)
class FFT(KernelConstant):
    """Complex Fourier transforms of length `n`, one or several a block.

    Forward: ``X[k] = sum_j x[j] exp(-2 pi i j k / n)``. Inverse: the same with ``+``, and not divided by `n`.

    Parameters
    ----------
    n : int
        Length, a power of two: 2 to 16384 for complex64, 2 to 8192 for complex128. The largest of each needs 136 KB
        of shared memory, more than compute capability 8.6, 8.9 and 12.0 have.
    dtype : dtype, optional
        complex64 (default) or complex128.
    direction : {"forward", "inverse"}, optional
        Sign of the exponent. Default "forward".
    ffts_per_block : int, optional
        Transforms that a block computes side by side. Default: chosen for speed.
    elements_per_thread : int, optional
        Elements that a thread holds in registers. Default: chosen for speed.

    Raises
    ------
    TypeError
        If `dtype` is neither complex64 nor complex128, or a number is no integer.
    ValueError
        If a value is not supported; the message gives the nearest that are.

    Notes
    -----
    Immutable, hashable and picklable: the object is the key of its type in Numba and of its code in every cache.
    """

    n: int
    dtype: Any = np.complex64
    direction: str = "forward"
    ffts_per_block: int = None  # type: ignore[assignment]  # the plan fills both in
    elements_per_thread: int = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        element = dtypes.lookup(self.dtype, "dtype", dtypes_of(FFT_VARIANTS))
        object.__setattr__(self, "dtype", element.numpy)
        check_choice("direction", self.direction, DIRECTIONS)
        object.__setattr__(self, "n", check_positive_integer("n", self.n))
        for name in ("ffts_per_block", "elements_per_thread"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, check_positive_integer(name, getattr(self, name)))
        plan = self.plan
        object.__setattr__(self, "ffts_per_block", plan.ffts_per_block)
        object.__setattr__(self, "elements_per_thread", plan.elements_per_thread)

    def __repr__(self) -> str:
        return (
            f"FFT({self.n}, {self.dtype}, {self.direction!r}, ffts_per_block={self.ffts_per_block},"
            f" elements_per_thread={self.elements_per_thread})"
        )

    @cached_property
    def plan(self) -> FFTPlan:
        """Radices, exchange and launch bounds that the variant in charge chose."""
        element = dtypes.lookup(self.dtype)
        variant = transform_variant(element.name)
        real = dtypes.BY_NAME[element.real].cpp
        return variant.plan(self.n, real, self.elements_per_thread, self.ffts_per_block)

    def __getstate__(self) -> dict[str, Any]:
        # The plan follows from the fields: a pickle carries the fields alone.
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @property
    def forward(self) -> "FFT":
        """The same transform with ``direction="forward"``."""
        return dataclasses.replace(self, direction="forward")

    @property
    def inverse(self) -> "FFT":
        """The same transform with ``direction="inverse"``: unnormalised, ``inverse(forward(x)) == n * x``."""
        return dataclasses.replace(self, direction="inverse")

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.plan.threads

    @property
    def threads_per_fft(self) -> int:
        """Threads that share one transform."""
        return self.plan.threads_per_fft

    @property
    def block_dim(self) -> tuple[int, int, int]:
        """Block to launch: ``kernel[fft.grid(count), fft.block_dim]``."""
        return (self.threads, 1, 1)

    @property
    def launch_bounds(self) -> tuple[int, int]:
        """(threads a block, blocks a multiprocessor at least) that the verbs annotate the kernel with."""
        return (self.threads, self.plan.min_blocks)

    @property
    def layout(self) -> TileLayout:
        """Placement of the block's transforms in a tile from ``devmath.shared(fft)``: (ffts_per_block, n), dense."""
        rows = self.plan.ffts_per_block
        return TileLayout(dtypes.lookup(self.dtype), rows, self.n, "row", self.n, rows)

    @property
    def fragment(self) -> FragmentMap:
        """Which element of which of the block's transforms each register holds."""
        per_fft, elements = self.plan.threads_per_fft, self.plan.elements_per_thread
        return FragmentMap(
            self.plan.ffts_per_block,
            self.n,
            elements,
            row_of_thread=Digits(((per_fft, self.plan.ffts_per_block, 1),)),
            row_of_register=Digits(()),
            col_of_thread=Digits(((1, per_fft, 1),)),
            col_of_register=Digits(((1, elements, per_fft),)),
        )

    def grid(self, count: int) -> int:
        """Return the blocks that `count` transforms take, at least 1: no grid may be empty.

        Raises
        ------
        ValueError
            If `count` is negative.
        """
        if count < 0:
            raise ValueError(f"count must be >= 0, got {count}")
        return max(1, -(-count // self.plan.ffts_per_block))


@Verb
def registers(desc: FFT) -> Any:
    """Return this thread's elements of its transform, in registers.

    The result has ``size`` elements, read and written as ``v[i]``; ``v.index(i)`` is the position of ``v[i]`` in the
    transform. Contents are undefined until `devmath.load` or an assignment.

    Parameters
    ----------
    desc : FFT
    """


@Verb
def transform_index(desc: FFT) -> Any:
    """Return which transform of the batch this thread works on: ``blockIdx.x * ffts_per_block`` + that in the block.

    Parameters
    ----------
    desc : FFT
    """


@Verb
def fft(desc: FFT, data: Any) -> Any:
    """Transform in place: ``fft(desc, v)`` registers, or ``fft(desc, tile)`` shared memory.

    Parameters
    ----------
    desc : FFT
        Its direction is the one that counts; everything else must be what `data` was made with.
    data : registers, tile or array
        From `devmath.registers` or a ``cuda.local.array`` of ``desc.elements_per_thread`` elements; or from
        `devmath.shared`, or a ``cuda.shared.array``: (ffts_per_block, n), or 1-D and dense. A tile of a product
        serves too where its rows are the transforms.

    Raises
    ------
    TypingError
        If `data` is of the wrong kind, dtype, shape or descriptor.

    Notes
    -----
    Collective: every thread of the block calls it. It uses ``desc.plan.exchange_bytes`` of shared memory of its own.
    A tile is read and written by the threads that own the elements: `devmath.wait` before and after it.
    """
