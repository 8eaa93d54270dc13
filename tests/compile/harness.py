"""Kernels compiled, linked and disassembled for any target, with no GPU and no driver."""

import re
import subprocess
import sysconfig
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from numba.core import errors as numba_errors
from numba.cuda import codegen, compiler, dispatcher, types
from numba.cuda.core import errors as numba_cuda_errors

from devmath.dtypes import lookup
from devmath.frontends.numba_cuda.types import numba_type
from devmath.lto.arch import compute_capability

#: numba-cuda has a class of its own; Numba, whose types it uses, raises the other on the way.
TYPING_ERRORS = (numba_errors.TypingError, numba_cuda_errors.TypingError)

CUOBJDUMP = Path(sysconfig.get_path("purelib"), "nvidia", "cu13", "bin", "cuobjdump")

# nvJitLink says only where it took a kernel from; whatever else it or ptxas says is a warning.
_HARMLESS = re.compile(r"INFO: .* Container created")
_INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z0-9_.]+)", re.MULTILINE)
# Below sm_90 ptxas leaves some loops by a CALL.REL to the next instruction, which nothing returns from: a jump.
_CALLS = ("CALL.ABS", "RET")
_USAGE = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:(\d+) LOCAL:(\d+)")


@dataclass(frozen=True)
class Binary:
    """What the linker made of a kernel.

    Parameters
    ----------
    opcodes : Counter
        Instructions by their whole opcode, such as "LDS.128".
    registers, stack_bytes, shared_bytes, local_bytes : int
        Registers a thread, stack and local memory a thread, static shared memory a block.
    log : str
        What nvJitLink and ptxas had to say, harmless lines left out.
    ptx : str
        PTX of the kernel alone, before our functions are linked in: it shows what the kernel was annotated with.
    dynamic_bytes : int
        Dynamic shared memory that the verbs ask a launch for.
    """

    opcodes: Counter[str]
    registers: int
    stack_bytes: int
    shared_bytes: int
    local_bytes: int
    log: str
    ptx: str
    dynamic_bytes: int

    def count(self, opcode: str) -> int:
        """Instructions whose opcode is `opcode`, or continues it after a dot: "LDS" counts "LDS.128"."""
        return sum(n for name, n in self.opcodes.items() if f"{name}.".startswith(f"{opcode}."))

    @property
    def launch_bounds(self) -> tuple[int, int]:
        """(threads a block, blocks a multiprocessor at least) that the kernel is annotated with."""
        (threads,) = re.findall(r"\.maxntid (\d+), 1, 1", self.ptx)
        (blocks,) = re.findall(r"\.minnctapersm (\d+)", self.ptx)
        return int(threads), int(blocks)

    def assert_clean(self) -> None:
        """No call, no local memory, nothing to say: our functions were inlined and fit the registers."""
        assert self.log == ""
        assert {name: n for name in (*_CALLS, "LDL", "STL") if (n := self.count(name))} == {}
        assert (self.stack_bytes, self.local_bytes) == (0, 0)


@contextmanager
def target(arch: str) -> Iterator[tuple[int, int]]:
    """Answer the three questions that numba-cuda asks a device, as a GPU of `arch` would."""
    device = SimpleNamespace(compute_capability=compute_capability(arch), id=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dispatcher, "get_current_device", lambda: device)
        patch.setattr(compiler, "get_current_device", lambda: device)
        patch.setattr(codegen.devices, "get_context", lambda *_: SimpleNamespace(device=device))
        yield device.compute_capability


def compile_kernel(kernel: Any, argument_types: tuple[types.Type, ...], arch: str) -> Any:
    """Numba's compiled form of a ``@cuda.jit`` function, by the way that a launch takes."""
    with target(arch):
        return dispatcher._Kernel(kernel.py_func, argument_types, **kernel.targetoptions)


def link(kernel: Any, argument_types: tuple[types.Type, ...], arch: str) -> Binary:
    """Compile and link a ``@cuda.jit`` function for `arch`, and take the result apart."""
    compiled = compile_kernel(kernel, argument_types, arch)
    with target(arch):
        library = compiled.library
        cc = library._ensure_cc(None)
        cubin, log, ptx = library.get_cubin(cc).code, library.get_linkerinfo(cc), library.get_asm_str(cc)
    sass, usage = _cuobjdump("-sass", cubin), _cuobjdump("-res-usage", cubin)
    (numbers,) = _USAGE.findall(usage)
    registers, stack, shared, local = map(int, numbers)
    requirements = getattr(library, "devmath_requirements", None)
    return Binary(
        opcodes=Counter(_INSTRUCTION.findall(sass)),
        registers=registers,
        stack_bytes=stack,
        shared_bytes=shared,
        local_bytes=local,
        log=_remarks(log),
        ptx=ptx,
        dynamic_bytes=requirements.dynamic_bytes if requirements else 0,
    )


def _remarks(log: str) -> str:
    lines = (line.strip("\0 ") for line in log.splitlines())
    return "\n".join(line for line in lines if line and not _HARMLESS.search(line))


def _cuobjdump(flag: str, cubin: bytes) -> str:
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run([CUOBJDUMP, flag, file.name], capture_output=True, text=True, check=True)
    return done.stdout


def array(dtype: Any, ndim: int = 2, layout: str = "A") -> types.Array:
    """Numba's type of an array; layout "A" is any strides."""
    return types.Array(numba_type(lookup(dtype)), ndim, layout)


def scalar(dtype: Any) -> types.Type:
    """Numba's type of a number."""
    return numba_type(lookup(dtype))
