"""What an argument of a verb is to the rules, beside a descriptor or an operand of one.

As text: in the words of an error message. Compared by identity: the simulator's tiles and fragments derive from these,
and no two tiles are the same.
"""

from dataclasses import dataclass
from functools import cached_property

from ..blas_device import Gemm, Operand
from ..dtypes import BY_NAME, DType
from ..fft_device import FFT
from ..fragments import FragmentMap
from ..layouts import TileLayout, TilePerProduct


@dataclass(frozen=True, eq=False)
class TileOperand:
    """A tile in shared memory: one of the block, or one `per_product` of several that the block computes."""

    layout: TileLayout
    per_product: TilePerProduct | None = None

    def __str__(self) -> str:
        owner = f", one for each {self.per_product.threads} threads" if self.per_product else ""
        return f"a tile {self.shape} of {self.dtype.name}, order {self.layout.order!r}{owner}"

    @property
    def dtype(self) -> DType:
        return self.layout.dtype

    @property
    def shape(self) -> tuple[int, int]:
        return (self.layout.rows, self.layout.cols)


@dataclass(frozen=True, eq=False)
class StackOperand:
    """Tiles of one layout in shared memory, one behind another."""

    layout: TileLayout
    stages: int
    per_product: TilePerProduct | None = None

    def __str__(self) -> str:
        return f"{self.stages} stages of {TileOperand(self.layout, self.per_product)}"


@dataclass(frozen=True, eq=False)
class FragmentOperand:
    """A thread's share of a product or of a transform.

    `desc` is the descriptor that made it; for a transform the forward one, since both directions hold data alike. The
    share of a product depends on the target; None stands for the simulator. `converted` is the type of its elements
    where that is not the type of the sums.
    """

    desc: Gemm | FFT
    arch: str | None = None
    converted: DType | None = None

    def __str__(self) -> str:
        dtype = f", converted to {self.converted.name}" if self.converted else ""
        return f"the {'registers' if self.is_transform else 'accumulator'} of {self.desc!r}{dtype}"

    @property
    def is_transform(self) -> bool:
        return isinstance(self.desc, FFT)

    @cached_property
    def map(self) -> FragmentMap:
        return self.desc.plan_on(self.arch).fragment if isinstance(self.desc, Gemm) else self.desc.fragment

    @property
    def dtype(self) -> DType:
        if self.converted:
            return self.converted
        return self.desc.plan.accumulator if isinstance(self.desc, Gemm) else BY_NAME[self.desc.dtype.name]


@dataclass(frozen=True, eq=False)
class VectorOperand:
    """A thread's share of a value for each row, or each column (`axis` is "row" or "col"), of a product's result.

    The share depends on the target, like that of an accumulator; None stands for the simulator.
    """

    desc: Gemm
    axis: str
    dtype: DType
    arch: str | None = None

    def __str__(self) -> str:
        return f"a {self.axis} vector of {self.dtype.name} of {self.desc!r}"

    @cached_property
    def map(self) -> FragmentMap:
        """The accumulator, transposed for a column vector: the vector has a value for each of its rows."""
        return seen_along(self.axis, self.desc.plan_on(self.arch).fragment)

    @property
    def slots(self) -> int:
        """Values that a thread holds."""
        return self.map.row_of_register.count

    def deals_out_like(self, fragment: FragmentMap) -> bool:
        """Whether every thread finds the values for its registers of another accumulator here, slot by slot."""
        other = seen_along(self.axis, fragment)
        mine, theirs = (
            (x.rows, x.row_of_thread, [term[1:] for term in x.row_of_register.terms]) for x in (self.map, other)
        )
        return mine == theirs


def seen_along(axis: str, fragment: FragmentMap) -> FragmentMap:
    """A fragment, transposed if `axis` is "col", so that the axis is that of its rows."""
    return fragment if axis == "row" else fragment.transposed


@dataclass(frozen=True, eq=False)
class ArrayOperand:
    """An array of the user's own; `layout` is "C", "F", or "A" for any strides, `dtype` a name, ours or another."""

    ndim: int
    dtype: str
    layout: str
    writable: bool

    def __str__(self) -> str:
        return f"a {self.ndim}-D array of {self.dtype}, layout {self.layout!r}"


@dataclass(frozen=True, eq=False)
class MappedOperand(ArrayOperand):
    """An array that ``desc.operands`` returned as its matrix `name`, with a tensor map."""

    desc: Gemm
    name: str

    def __str__(self) -> str:
        return f"{self.name} of the operands of {self.desc!r}"


@dataclass(frozen=True, eq=False)
class TileIndexOperand:
    """A tile of `devmath.tiles`."""

    desc: Gemm

    def __str__(self) -> str:
        return f"a tile of devmath.tiles({self.desc!r})"


@dataclass(frozen=True, eq=False)
class OtherOperand:
    """Anything else. `kind` is "integer", "real", "complex", "device function" or "other"; a bool is other.

    `type` is of the front end's own: only its text counts. `value` is that of an integer, where it is known now.
    """

    type: object
    kind: str
    items: "tuple[Argument, ...]" = ()
    value: int | None = None

    def __str__(self) -> str:
        return str(self.type)


Argument = (
    Gemm
    | FFT
    | Operand
    | TileOperand
    | StackOperand
    | FragmentOperand
    | VectorOperand
    | TileIndexOperand
    | ArrayOperand
    | OtherOperand
)
