"""How the values of flags are read."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import TypeVar

_SUFFIXED = re.compile(r"(\d+(?:\.\d+)?)([kmgtKMGT])")
_POWERS = {"k": 1, "m": 2, "g": 3, "t": 4}
_T = TypeVar("_T")


class NotCarried(Exception):
    """A value that the engine knows, but a scenario does not; its text says why."""


def whole(text: str) -> int:
    """A whole number, also as vLLM writes it for people: `8k` is 8,000, `8K` 8,192, `25.6k` 25,600.

    Raises ValueError.
    """
    if match := _SUFFIXED.fullmatch(text):
        number, suffix = match.groups()
        if suffix.islower():
            return round(float(number) * float(1000 ** _POWERS[suffix]))
        return int(number) << 10 * _POWERS[suffix.lower()]
    return int(text)


def number(text: str) -> float:
    """A finite number; raises ValueError."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return int(value) if value.is_integer() and "." not in text else value


def text(given: str) -> str:
    """As it stands."""
    return given


def choice(known: Mapping[str, _T], unknown: str = "is not supported") -> Callable[[str], _T]:
    """Reads one of some words; another is not carried over."""

    def read(given: str) -> _T:
        if given not in known:
            raise NotCarried(f"{unknown}; known are {', '.join(known)}")
        return known[given]

    return read


def same(*words: str) -> dict[str, str]:
    """Words that a scenario writes as the engine does."""
    return {word: word for word in words}


def whole_or_none(*automatic: str) -> Callable[[str], int]:
    """A whole number, or a word by which the engine finds it by itself."""

    def read(given: str) -> int:
        if given.lower() in automatic:
            raise NotCarried("is what it is when left out")
        return whole(given)

    return read
