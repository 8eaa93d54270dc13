"""What is checked and set when a kernel is loaded and launched.

Loading: numba-cuda calls `prepare_module` for every module that holds one of our functions. Launching: `check_launch`
runs before each launch of such a kernel, and fits the block and the dynamic shared memory to it.
"""

import functools
import warnings
from dataclasses import dataclass, field
from typing import Any

from numba.cuda.dispatcher import _Kernel

from ...blas_device import Gemm
from ...errors import LaunchError, PerformanceWarning
from ...fft_device import FFT
from ...layouts import round_up
from .. import kernel_rules
from .matrices import MappedType, take_matrices

DYNAMIC_ALIGNMENT = 1024  # the widest swizzle pattern of the hardware repeats every 1024 bytes


@dataclass
class Requirements:
    """What the verbs in one kernel or device function ask of a launch.

    Parameters
    ----------
    owner : Gemm or FFT or None
        The first descriptor, whose threads the block must have.
    arch : str or None
        The target.
    has_mainloop : bool
        Whether there is a loop over tiles.
    min_blocks : int
        Blocks that a multiprocessor shall hold at least.
    transforms : int
        Transforms in the code.
    shared_bytes : int
        Shared memory of all tiles and buffers.
    dynamic_bytes : int
        The part of it that is dynamic, beyond the caller's own.
    exchanges : dict
        The exchange buffers by users, size and alignment in bytes: address, and the flag that it may still be read.
    """

    owner: Gemm | FFT | None = None
    arch: str | None = None
    has_mainloop: bool = False
    min_blocks: int = 0
    transforms: int = 0
    shared_bytes: int = 0
    dynamic_bytes: int = 0
    exchanges: dict[tuple[str, int, int], Any] = field(default_factory=dict)


def requirements_of(library: Any) -> Requirements:
    """The record of a code library, made at the first request."""
    if not hasattr(library, "devmath_requirements"):
        library.devmath_requirements = Requirements()
    return library.devmath_requirements


def _collect(kernel: Any) -> Requirements | None:
    """Requirements of a kernel and of the device functions that it calls; None where it has none of our verbs."""
    libraries = [kernel.library, *kernel.library.linking_libraries]
    found = [library.devmath_requirements for library in libraries if hasattr(library, "devmath_requirements")]
    if not found:
        return None
    owners = [requirements.owner for requirements in found if requirements.owner]
    arch = next((requirements.arch for requirements in found if requirements.arch), None)
    for other in owners[1:]:
        kernel_rules.agree_on_threads(owners[0], other, LaunchError, arch)
    has_mainloop = any(requirements.has_mainloop for requirements in found)
    dynamic_bytes = sum(requirements.dynamic_bytes for requirements in found)
    return Requirements(owners[0] if owners else None, arch, has_mainloop, dynamic_bytes=dynamic_bytes)


def check_launch(kernel: Any, block_dim: tuple[int, int, int], shared_bytes: int) -> int:
    """Refuse a block that does not fit; return the dynamic shared memory to launch with, in bytes.

    Raises
    ------
    LaunchError
        If the block has not exactly the threads that the kernel's descriptors are made for.
    """
    if not hasattr(kernel, "devmath_requirements"):
        kernel.devmath_requirements = _collect(kernel)
        if _may_get_matrices(kernel):
            take_matrices(kernel)
    requirements = kernel.devmath_requirements
    if requirements is None:
        return shared_bytes
    if requirements.owner:
        kernel_rules.block_of(requirements.owner, tuple(block_dim), requirements.arch)
    if not requirements.dynamic_bytes:
        return shared_bytes
    return round_up(shared_bytes, DYNAMIC_ALIGNMENT) + requirements.dynamic_bytes


def _may_get_matrices(kernel: Any) -> bool:
    """Whether a kernel may be launched with what `Gemm.operands` returned."""
    requirements = kernel.devmath_requirements
    has_maps = any(isinstance(ty, MappedType) for ty in kernel.argument_types)
    return has_maps or bool(requirements and requirements.has_mainloop)


def _install() -> None:
    """Have every kernel launch pass `check_launch`. numba-cuda offers hooks for one launch, none for a kernel."""
    launch = _Kernel.launch

    @functools.wraps(launch)
    def checked_launch(self: Any, args: Any, griddim: Any, blockdim: Any, stream: Any = 0, sharedmem: int = 0) -> Any:
        return launch(self, args, griddim, blockdim, stream, check_launch(self, blockdim, sharedmem))

    _Kernel.launch = checked_launch


_install()


def prepare_module(module: Any) -> None:
    """Open all shared memory to the kernels of a loaded module, and warn of local memory. May run more than once."""
    from cuda.bindings import driver

    def check(result: Any) -> Any:
        if result[0] != driver.CUresult.CUDA_SUCCESS:
            raise RuntimeError(f"CUDA driver: {result[0].name}")
        return result[1] if len(result) == 2 else None

    attribute = driver.CUfunction_attribute
    device = check(driver.cuCtxGetDevice())
    limit_attribute = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    limit = check(driver.cuDeviceGetAttribute(limit_attribute, device))
    library = driver.CUlibrary(int(module.handle))
    for kernel in check(driver.cuLibraryEnumerateKernels(check(driver.cuLibraryGetKernelCount(library)), library)):
        static = check(driver.cuKernelGetAttribute(attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, kernel, device))
        dynamic = attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        check(driver.cuKernelSetAttribute(dynamic, limit - static, kernel, device))
        spilled = check(driver.cuKernelGetAttribute(attribute.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, kernel, device))
        if spilled:
            name = check(driver.cuKernelGetName(kernel)).decode()
            warnings.warn(
                f"kernel {name} keeps {spilled} bytes a thread in local memory, which is slow: its registers overflow,"
                " or registers are indexed by a run-time value. Use devmath.apply instead of a long loop over an"
                " accumulator, more threads, or fewer elements per thread",
                PerformanceWarning,
                stacklevel=2,
            )
