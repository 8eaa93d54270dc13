"""A translation unit: the text that NVRTC compiles, and the one symbol that it defines."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

_DIGEST_LENGTH = 16  # hexadecimal digits: a clash among a million units has a chance of 3e-8


@dataclass(frozen=True)
class Unit:
    """CUDA C++ text that defines one ``extern "C"`` device function.

    Parameters
    ----------
    symbol : str
        Name of the function.
    source : str
        The text.
    """

    symbol: str
    source: str

    @classmethod
    def render(cls, stem: str, text: Callable[[str], str]) -> "Unit":
        """Name a text by its content, so that texts share a symbol exactly where they are equal.

        nvJitLink refuses two definitions of one symbol, and a kernel may hold any mix of units.

        Parameters
        ----------
        stem : str
            The readable part of the symbol, such as "gemm_fma_32x32x64_float32".
        text : callable
            Maps a symbol to the text that defines it.

        Raises
        ------
        ValueError
            If `stem` makes no C identifier.
        """
        if not (f"_{stem}".isidentifier() and stem.isascii()):
            raise ValueError(f"stem must be part of a C identifier, got {stem!r}")
        digest = hashlib.sha256(text(f"dm_{stem}").encode()).hexdigest()[:_DIGEST_LENGTH]
        symbol = f"dm_{stem}_{digest}"
        return cls(symbol, text(symbol))
