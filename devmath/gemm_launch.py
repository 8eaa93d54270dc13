"""How a product is launched: the threads of a block, the blocks of a grid, and the operands of a whole product."""

from abc import abstractmethod
from functools import cache
from typing import Any

from .lto.gemm_plan import GemmPlan
from .lto.mainloop_plan import MainloopPlan
from .lto.mainloop_plan import plan as plan_mainloop
from .verbs import front_end


class GemmLaunch:
    """The part of `Gemm` that has to do with launches."""

    m: int
    n: int
    threads: int
    gemms_per_block: int
    mainloop: bool

    @abstractmethod
    def plan_on(self, arch: str | None) -> GemmPlan:
        """How the variant in charge on a target lays out tiles and registers."""

    def mainloop_on(self, arch: str | None) -> MainloopPlan:
        """How operands reach the tile on a target, such as "sm_90a"; None stands for the simulator.

        Raises
        ------
        ValueError
            If the descriptor was not made with ``mainloop=True``, or the target has too little shared memory.
        """
        return _mainloop(self, arch)

    def launch_bounds_on(self, arch: str | None) -> tuple[int, int]:
        """(threads a block, blocks a multiprocessor at least) that the verbs annotate the kernel with on a target."""
        if not self.mainloop:
            return (self.threads, 1)
        planned = self.mainloop_on(arch)
        return (planned.threads, planned.blocks_per_multiprocessor)

    @property
    def launch_bounds(self) -> tuple[int, int]:
        """`launch_bounds_on` the target of the current device, on which they depend with ``mainloop=True`` alone."""
        return self.launch_bounds_on(front_end().current_arch() if self.mainloop else None)

    @property
    def block_dim(self) -> tuple[int, int, int]:
        """Block to launch: ``kernel[grid, mm.block_dim]``."""
        return (self.launch_bounds[0], 1, 1)

    @property
    def threads_per_gemm(self) -> int:
        """Threads that share one product."""
        return self.threads // self.gemms_per_block

    def grid(self, *extents: int) -> int:
        """Return the blocks to launch, at least 1: no grid may be empty.

        Parameters
        ----------
        *extents : int
            The products of a batch, ``grid(count)``; with ``mainloop=True`` rows and columns of C, ``grid(m, n)``: as
            many blocks as run together on the current device, but no more than tiles.

        Raises
        ------
        TypeError
            If the number of extents is not that.
        ValueError
            If one is negative.
        """
        names = ("m", "n") if self.mainloop else ("count",)
        if len(extents) != len(names):
            raise TypeError(f"grid takes ({', '.join(names)}) of {self!r}, got {extents}")
        for name, extent in zip(names, extents, strict=True):
            if extent < 0:
                raise ValueError(f"{name} must be >= 0, got {extent}")
        if not self.mainloop:
            return max(1, -(-extents[0] // self.gemms_per_block))
        tiles = -(-extents[0] // self.m) * -(-extents[1] // self.n)
        together = self.launch_bounds[1] * front_end().multiprocessors()
        return int(max(1, min(tiles, together)))

    def operands(self, a: Any, b: Any, c: Any) -> tuple[Any, Any, Any]:
        """A, B and C as the kernel takes them fastest, for the arguments of a launch.

        On a device that copies by tensor maps each comes back with a map; else, and where a map cannot describe an
        array, all as they are. In the kernel they are arrays as before. A repeated call costs little. Work on the
        arrays that other streams still do is the caller's to wait for.

        Parameters
        ----------
        a, b, c : array
            (m, k), (k, n) and (m, n), in memory of the current device: of Numba, CuPy, PyTorch, or anything with
            ``__cuda_array_interface__`` or DLPack.

        Raises
        ------
        TypeError
            If one is no such array, or of the wrong dtype.
        ValueError
            If the shapes do not fit each other, or an order is not that of the descriptor.
        """
        return front_end().operands(self, a, b, c)


@cache
def _mainloop(desc: GemmLaunch, arch: str | None) -> MainloopPlan:
    if not desc.mainloop:
        raise ValueError(f"the descriptor must be made with mainloop=True, got {desc!r}")
    return plan_mainloop(desc.plan_on(arch), arch)
