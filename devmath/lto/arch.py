"""The target architectures: their names, and the limits that differ between them."""

import re
from collections.abc import Sequence

MINIMUM_COMPUTE_CAPABILITY = (8, 0)

# Every specialisation is compiled and linked for these by the tests.
ARCHITECTURES = ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a")

# Table "Technical Specifications per Compute Capability" of the CUDA programming guide, in KiB a block after opt-in.
# A compute capability that is not listed has the limit of its major version.
_SHARED_MEMORY_KIB = {(8, 0): 163, (8, 7): 163, (8,): 99, (9,): 227, (10,): 227, (11,): 227, (12,): 99}


def arch_name(compute_capability: Sequence[int | str]) -> str:
    """Name the target for a compute capability: ``(9, 0)`` is "sm_90a".

    From 9.0 on numba-cuda links kernels for the architecture-specific target, whose suffix is "a". A third item of
    `compute_capability`, such as ``(10, 0, "f")``, names another suffix.

    Raises
    ------
    ValueError
        If the compute capability is below 8.0.
    """
    major, minor, *given = compute_capability
    number = int(major), int(minor)
    if number < MINIMUM_COMPUTE_CAPABILITY:
        raise ValueError(f"compute capability must be at least 8.0 (Ampere), got {major}.{minor}")
    suffix = given[0] if given else "a" if number >= (9, 0) else ""
    return f"sm_{major}{minor}{suffix}"


def compute_capability(arch: str) -> tuple[int, int]:
    """Compute capability of a target: "sm_90a" is ``(9, 0)``.

    Raises
    ------
    ValueError
        If `arch` is no such name, or below 8.0.
    """
    match = re.fullmatch(r"sm_(\d+)(\d)[af]?", arch)
    number = (int(match[1]), int(match[2])) if match else (0, 0)
    if number < MINIMUM_COMPUTE_CAPABILITY:
        raise ValueError(f"arch must be sm_80 or newer, such as {', '.join(ARCHITECTURES)}, got {arch}")
    return number


def shared_memory_limit_bytes(arch: str) -> int:
    """Shared memory that one block may have on `arch`, once its kernel has opted in.

    Raises
    ------
    ValueError
        If `arch` is unknown.
    """
    number = compute_capability(arch)
    kib = _SHARED_MEMORY_KIB.get(number) or _SHARED_MEMORY_KIB.get(number[:1])
    if kib is None:
        raise ValueError(f"arch must be one of compute capability 8 to 12, got {arch}")
    return kib * 1024
