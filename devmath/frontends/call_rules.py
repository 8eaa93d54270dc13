"""How a verb is called, whatever it does: which of its arguments may be named, and which must be constants."""

from collections.abc import Callable
from inspect import signature
from typing import Any

from ..blas_device import Gemm, Operand
from ..fft_device import FFT
from .rules import Argument, OtherOperand, TypingError, descriptor

_KEYWORDS = {"shared": ("stages",), "wait": ("pending",)}


def takes_keywords(verb: str) -> bool:
    """Whether a verb has arguments that may be named."""
    return verb in _KEYWORDS


def arguments(verb: str, function: Callable[..., Any], *args: Any, **keywords: Any) -> None:
    """Refuse arguments that `function`, which stands for a verb, does not take, and names of those that have none."""
    known = _KEYWORDS.get(verb, ())
    if unknown := [name for name in keywords if name not in known]:
        takes = f"no keyword but {', '.join(known)}" if known else "positional arguments only"
        raise TypingError(f"devmath.{verb} takes {takes}, got {', '.join(unknown)}")
    try:
        signature(function).bind(*args, **keywords)
    except TypeError as error:
        raise TypingError(f"devmath.{verb}: {error}") from None


def constant(verb: str, name: str, argument: Argument, least: int) -> int:
    """Return the value of an integer that must be known while compiling."""
    value = argument.value if isinstance(argument, OtherOperand) else None
    if value is None or value < least:
        got = argument if value is None else value
        raise TypingError(f"devmath.{verb}: {name} must be an integer >= {least}, known while compiling, got {got}")
    return value


def wait(*args: Argument, pending: Argument | None) -> tuple[Gemm | None, int]:
    """Accept the product whose threads wait, and how many loads may be under way still; either may be left out."""
    mm = None
    if args and isinstance(args[0], Gemm | FFT | Operand):
        mm, args = descriptor("wait", args[0]), args[1:]
    if len(args) > (pending is None):
        raise TypingError("devmath.wait: too many positional arguments")
    count = args[0] if args else pending
    return mm, 0 if count is None else constant("wait", "pending", count, 0)
