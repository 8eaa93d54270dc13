"""Checks of what a user passes to a descriptor: one sentence a rule, with the value."""

import operator
from collections.abc import Iterable
from typing import Any


def check_positive_integer(name: str, value: Any) -> int:
    """Return `value` as an int of at least 1."""
    if isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {value!r}") from None
    if number < 1:
        raise ValueError(f"{name} must be >= 1, got {number}")
    return number


def check_choice(name: str, value: Any, choices: Iterable[Any]) -> None:
    """Refuse a `value` that is none of `choices`."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
