"""The CUDA compiler libraries: which versions are loaded, and whether they fit together."""

import functools

from ..errors import ToolchainError


def nvrtc_version() -> tuple[int, int]:
    """Version of NVRTC, which compiles our headers.

    Raises
    ------
    ToolchainError
        If the library cannot be loaded.
    """
    from cuda.bindings import nvrtc

    try:
        _, major, minor = nvrtc.nvrtcVersion()
    except RuntimeError as error:
        raise _missing("NVRTC", error) from error
    return major, minor


def nvjitlink_version() -> tuple[int, int]:
    """Version of nvJitLink, which links the result into a kernel.

    Raises
    ------
    ToolchainError
        If the library cannot be loaded.
    """
    from cuda.bindings import nvjitlink

    try:
        major, minor = nvjitlink.version()
    except RuntimeError as error:
        raise _missing("nvJitLink", error) from error
    return major, minor


@functools.cache
def check() -> None:
    """Make sure that nvJitLink can link what NVRTC makes.

    nvJitLink reads the LTO-IR of its own major version, up to its own version.

    Raises
    ------
    ToolchainError
        If a library is missing, or the versions do not fit.
    """
    nvrtc, nvjitlink = nvrtc_version(), nvjitlink_version()
    if nvrtc > nvjitlink or nvrtc[0] != nvjitlink[0]:
        raise ToolchainError(
            f"nvJitLink must have NVRTC's major version and be no older, got nvJitLink {format_version(nvjitlink)} "
            f"and NVRTC {format_version(nvrtc)}; remedy: pip install --upgrade 'devmath[cu{nvrtc[0]}]'"
        )


def format_version(version: tuple[int, int]) -> str:
    """(13, 5) -> "13.5"."""
    return ".".join(map(str, version))


def _missing(library: str, error: RuntimeError) -> ToolchainError:
    reason = str(error).strip().partition("\n")[0]
    return ToolchainError(
        f"{library} cannot be loaded ({reason}); remedy: pip install 'devmath[cu13]', or 'devmath[cu12]' where the "
        "driver is older than CUDA 13"
    )
