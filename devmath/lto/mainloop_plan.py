"""Plans of whole matrix products in one kernel: how tiles of A and B reach the block that multiplies them."""

from dataclasses import dataclass
from functools import cache, cached_property

from ..dtypes import DType
from ..layouts import CHUNK_BYTES, TileLayout, round_up
from .arch import ARCHITECTURES, shared_memory_limit_bytes
from .gemm_plan import WARP, GemmPlan

GROUP = 16  # rows of tiles that are computed one below another: multiplied by 128 rows they fill the L2 cache well
WARPGROUP = 128
STATE_BYTES = 256  # of what a thread keeps from tile to tile, in registers

# Of each thread that only loads, and that multiplies, by the warpgroups that multiply: no more together than a block
# starts with, or threads would wait for registers for ever. One warpgroup alone has as many as a thread can have.
_REGISTERS = {2: (40, 232), 3: (32, 160), 4: (24, 112)}
_STAGE_ALIGNMENT = 1024  # the widest swizzle repeats after so many bytes
_BARRIER_BYTES = 128  # of all stages
_MIN_STAGES, _MAX_STAGES = 2, 6
_STAGES_CP_ASYNC = 4  # more do not help threads that load and multiply by turns
_MAX_BOX = 256  # lines that one copy by TMA brings
_STORED = ("float16", "bfloat16", "float32")  # elements of C that are stored by TMA
_STORE_BUFFERS, _WARP_ROWS, _LINE_BYTES = 2, 16, 128  # StoreBuffers of store_tma.cuh


@dataclass(frozen=True)
class MainloopPlan:
    """One specialisation of a mainloop.

    Parameters
    ----------
    tile : GemmPlan
        The product of a stage: layouts, fragment and block.
    loads : {"tma", "cp_async"}
        How operands that are made for it reach shared memory. Plain arrays always come by cp.async.
    num_stages : int
        Stages of A and B in shared memory.
    limit_bytes : int
        Shared memory of a block at most, and about that of a multiprocessor.
    group : int
        Rows of tiles that are computed one below another.
    """

    tile: GemmPlan
    loads: str
    num_stages: int
    limit_bytes: int
    group: int = GROUP

    @property
    def threads(self) -> int:
        """Threads of a block: those that multiply, and those that only load."""
        return self.tile.threads + self.idle_threads

    @property
    def idle_threads(self) -> int:
        """Threads, the first of the block, that do not multiply."""
        return WARPGROUP if self.loads == "tma" else 0

    @property
    def registers(self) -> tuple[int, int]:
        """Registers of each thread that only loads, and that multiplies; zeros where they keep what they start with."""
        return _REGISTERS.get(self.tile.threads // WARPGROUP, (0, 0)) if self.idle_threads else (0, 0)

    @property
    def columns(self) -> int:
        """Columns of one instruction, for operands that come by TMA."""
        return int(self.tile.template.split(", ")[1])  # WgmmaBlock<Fragment, columns, bytes of an element>

    @property
    def a_bytes(self) -> int:
        """Shared memory of A in a stage."""
        return _tile_bytes(self.tile.a)

    @property
    def stage_bytes(self) -> int:
        """Shared memory of a stage."""
        return _stage_bytes(self.tile)

    @property
    def shared_bytes(self) -> int:
        """Shared memory of all stages, of their barriers, and of the buffers that results leave through."""
        return self.num_stages * self.stage_bytes + _other_bytes(self.tile, self.loads)

    def boxes(self, c: DType) -> dict[str, "Box"]:
        """Boxes of the matrices that are copied by TMA, by name: A and B, and C where its elements are `c`."""
        if self.loads != "tma":
            return {}
        boxes = {name: _box_of_panel(layout) for name, layout in (("a", self.tile.a), ("b", self.tile.b))}
        slice_length = _LINE_BYTES // c.itemsize
        # A copy knows the edge of the matrix, not that of the tile.
        is_float = self.tile.accumulator.name == "float32"
        if is_float and c.name in _STORED and self.columns % slice_length == 0 and self.tile.fragment.always_in_bounds:
            boxes["c"] = Box("row", _WARP_ROWS, slice_length, _LINE_BYTES // CHUNK_BYTES)
        return boxes

    @cached_property
    def blocks_per_multiprocessor(self) -> int:
        """Blocks that surely fit one multiprocessor together."""
        return max(1, min(self.limit_bytes // (self.shared_bytes + _STAGE_ALIGNMENT), 256 // self.threads))


@dataclass(frozen=True)
class Box:
    """What one copy by TMA brings or takes.

    Parameters
    ----------
    order : {"row", "col"}
        Whether the lines of the matrix in memory are its rows or its columns.
    lines : int
        Lines of the box.
    length : int
        Elements of each.
    swizzle : {2, 4, 8}
        As in `TileLayout`.
    """

    order: str
    lines: int
    length: int
    swizzle: int


def _box_of_panel(layout: TileLayout) -> Box:
    """One panel of a tile, with its surplus lines."""
    return Box(layout.order, layout.lines_allocated, layout.ld, layout.swizzle)


def _tile_bytes(layout: TileLayout) -> int:
    """Shared memory from one tile to the next."""
    return round_up(layout.size_bytes, _STAGE_ALIGNMENT)


def _stage_bytes(tile: GemmPlan) -> int:
    return _tile_bytes(tile.a) + _tile_bytes(tile.b)


@cache
def plan(tile: GemmPlan, arch: str | None) -> MainloopPlan:
    """Plan the mainloop around the product of a tile, on a target; None stands for the simulator.

    Raises
    ------
    ValueError
        If shared memory does not hold two stages.
    """
    limit = shared_memory_limit_bytes(arch) if arch else max(map(shared_memory_limit_bytes, ARCHITECTURES))
    loads = "tma" if tile.variant == "wgmma" and _can_load_by_tma(tile) else "cp_async"
    fitting = (limit - _STAGE_ALIGNMENT - _other_bytes(tile, loads)) // _stage_bytes(tile)
    if loads == "tma" and fitting < _MIN_STAGES:
        loads, fitting = "cp_async", (limit - _STAGE_ALIGNMENT - _other_bytes(tile, "cp_async")) // _stage_bytes(tile)
    if fitting < _MIN_STAGES:
        m, n, k = tile.problem.m, tile.problem.n, tile.problem.k
        raise ValueError(
            f"m, n, k of a mainloop must leave {_MIN_STAGES} stages of A and B within {limit - _STAGE_ALIGNMENT} bytes"
            f" of shared memory, got {m}, {n}, {k} of which a stage takes {_stage_bytes(tile)} bytes"
        )
    return MainloopPlan(tile, loads, min(fitting, _MAX_STAGES if loads == "tma" else _STAGES_CP_ASYNC), limit)


def _can_load_by_tma(tile: GemmPlan) -> bool:
    """Whether one box of TMA is one panel of a tile, for both operands, which must lie as in global memory."""
    layouts = (tile.a, tile.b)
    as_asked = all(layout.order == order for layout, order in zip(layouts, tile.problem.orders, strict=False))
    return as_asked and all(_box_of_panel(layout).lines <= _MAX_BOX for layout in layouts)


def _other_bytes(tile: GemmPlan, loads: str) -> int:
    """Shared memory beside the stages."""
    if loads != "tma":
        return 0
    return _BARRIER_BYTES + tile.threads // WARP * _STORE_BUFFERS * _WARP_ROWS * _LINE_BYTES


def tile_number(number: int, down: int, across: int, group: int = GROUP) -> tuple[int, int]:
    """Row and column, counted in tiles, of a tile of C, which is `down` x `across` tiles: as in scheduler.cuh."""
    first = number // (group * across) * group
    height = min(group, down - first)
    in_group = number - first * across
    return first + in_group % height, in_group // height
