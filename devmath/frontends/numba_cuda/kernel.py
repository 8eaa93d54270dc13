"""What the verbs ask of the kernel around them: shared memory, launch bounds, exchange buffers."""

import itertools
from typing import Any

from llvmlite import ir
from numba.cuda import cgutils
from numba.cuda.cudadrv.nvvm import ADDRSPACE_SHARED

from ...blas_device import Gemm
from ...fft_device import FFT
from ...layouts import round_up
from ...lto.arch import compute_capability
from .. import kernel_rules
from .launch import DYNAMIC_ALIGNMENT, requirements_of
from .linking import in_kernel, target_arch

INT8, INT32 = ir.IntType(8), ir.IntType(32)
LINE_BYTES = 128  # of shared memory: all banks once
_serial = itertools.count()


class LaunchAnnotations(ir.NamedMetaData):
    """The module's ``nvvm.annotations``, where bounds of the user's own replace ours.

    NVVM takes the first of two contradicting annotations, and numba-cuda adds those of ``launch_bounds=`` last.
    """

    BOUNDS = ("maxntidx", "minctasm")

    def __init__(self, parent: ir.Module):
        super().__init__(parent)
        self.ours: dict[str, Any] = {}

    def bound(self, function: ir.Function, name: str, value: int) -> None:
        """Set a bound of ours, in place of an earlier one."""
        if name in self.ours:
            self.operands.remove(self.ours[name])
        self.ours[name] = self.parent.add_metadata((function, ir.MetaDataString(self.parent, name), INT32(value)))
        self.operands.append(self.ours[name])

    def add(self, node: Any) -> None:
        if node.operands[1].string in self.BOUNDS:
            for ours in self.ours.values():
                self.operands.remove(ours)
            self.ours = {}
        super().add(node)


def annotate(context: Any, builder: ir.IRBuilder, desc: Gemm | FFT, transforms: int = 0) -> None:
    """Bind the function being lowered to the threads of `desc`, and a kernel to its launch bounds.

    Where descriptors of one kernel want different blocks a multiprocessor, the fewest hold: they leave the most
    registers. `transforms` counts the transforms that this call adds: from the second on a kernel has a filter or a
    window to keep beside the data, and gets up to a third more (64 registers spill in a convolution of 4096 points).
    """
    arch = target_arch()
    threads, min_blocks = kernel_rules.launch_bounds(desc, arch)
    requirements = requirements_of(context.active_code_library)
    requirements.owner, requirements.arch = requirements.owner or desc, arch
    kernel_rules.agree_on_threads(requirements.owner, desc, arch=arch)
    if not in_kernel():
        return
    annotations = builder.module.namedmetadata.get("nvvm.annotations")
    if not isinstance(annotations, LaunchAnnotations):
        annotations = builder.module.namedmetadata["nvvm.annotations"] = LaunchAnnotations(builder.module)
    requirements.transforms += transforms
    if requirements.transforms > 1:
        min_blocks -= min_blocks // 4
    requirements.min_blocks = min(requirements.min_blocks or min_blocks, min_blocks)
    annotations.bound(builder.function, "maxntidx", threads)
    annotations.bound(builder.function, "minctasm", requirements.min_blocks)


def shared_memory(context: Any, builder: ir.IRBuilder, size_bytes: int, alignment_bytes: int = LINE_BYTES) -> ir.Value:
    """Address of `size_bytes` of shared memory of the function's own, as a generic ``i8*``.

    Static where the target takes more than 48 KB of it: the architecture-specific ones, from 9.0 on. Otherwise a
    kernel's tiles are dynamic and lie at the end of that memory, behind the caller's own; `launch` asks for them.
    """
    arch = target_arch()
    requirements = requirements_of(context.active_code_library)
    size_bytes = round_up(size_bytes, LINE_BYTES)
    requirements.shared_bytes = round_up(requirements.shared_bytes + size_bytes, alignment_bytes)
    if static_is_unlimited(arch) or not in_kernel():
        kernel_rules.shared_memory(requirements.shared_bytes, arch)
        return _static_memory(builder, size_bytes, alignment_bytes)
    # Tiles are stacked down from the end of dynamic memory. Start and end of it are multiples of the widest alignment,
    # so a tile is aligned where the bytes from its start to the end are.
    requirements.dynamic_bytes = round_up(requirements.shared_bytes, DYNAMIC_ALIGNMENT)
    kernel_rules.shared_memory(requirements.dynamic_bytes, arch)
    return _dynamic_memory(builder, requirements.shared_bytes)


def static_is_unlimited(arch: str) -> bool:
    """Whether ptxas takes static shared memory up to the block's limit, and not 48 KB, for `arch`."""
    return compute_capability(arch) >= (9, 0)


def _static_memory(builder: ir.IRBuilder, size_bytes: int, alignment_bytes: int) -> ir.Value:
    name = f"devmath_shared_{next(_serial)}"
    memory = cgutils.add_global_variable(builder.module, ir.ArrayType(INT8, size_bytes), name, ADDRSPACE_SHARED)
    memory.initializer = ir.Constant(memory.value_type, ir.Undefined)
    memory.align = alignment_bytes
    return builder.addrspacecast(builder.bitcast(memory, INT8.as_pointer(ADDRSPACE_SHARED)), INT8.as_pointer())


def _dynamic_memory(builder: ir.IRBuilder, distance_from_end: int) -> ir.Value:
    name = "devmath_dynamic_shared"
    memory = builder.module.globals.get(name)
    if memory is None:
        memory = ir.GlobalVariable(builder.module, ir.ArrayType(INT8, 0), name, ADDRSPACE_SHARED)
        memory.linkage, memory.align = "external", DYNAMIC_ALIGNMENT
    base = builder.bitcast(memory, INT8.as_pointer(ADDRSPACE_SHARED))
    size = ir.InlineAsm(ir.FunctionType(INT32, []), "mov.u32 $0, %dynamic_smem_size;", "=r", side_effect=False)
    start = builder.sub(builder.call(size, []), INT32(distance_from_end))
    return builder.addrspacecast(builder.gep(base, [start]), INT8.as_pointer())


def exchange_buffer(
    context: Any, builder: ir.IRBuilder, users: str, size_bytes: int, alignment_bytes: int = LINE_BYTES
) -> tuple[ir.Value, ir.Value]:
    """The buffer that verbs of one function share through which threads exchange so much, and whether it may be in use.

    Only `users` of one kind share a buffer: a transform of one warp orders the accesses of that warp alone.

    The second value is 0 before the first use in a kernel, so that its leading barrier folds away. A device function
    cannot know what its caller ran before: there it is always 1.
    """
    if not size_bytes:
        return ir.Constant(INT8.as_pointer(), None), INT32(0)
    exchanges, kind = requirements_of(context.active_code_library).exchanges, (users, size_bytes, alignment_bytes)
    if kind not in exchanges:
        with builder.goto_entry_block():
            in_use = cgutils.alloca_once(builder, INT32, name="exchange_in_use")
            builder.store(INT32(0 if in_kernel() else 1), in_use)
            exchanges[kind] = shared_memory(context, builder, size_bytes, alignment_bytes), in_use
    memory, in_use = exchanges[kind]
    before = builder.load(in_use)
    builder.store(INT32(1), in_use)
    return memory, before
