"""Says in words where two decision logs part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

Line = Mapping[str, Any]


def first_difference(want_lines: Sequence[Line], got_lines: Iterable[Line]) -> str | None:
    """The first step (or operation) and key in which the logs differ, with both values; None if they agree.

    Only the keys of a wanted line count. A log that ends early or late differs there. `got_lines` is read no further
    than the difference.
    """
    got_lines = iter(got_lines)
    for number, want in enumerate(want_lines):
        got = next(got_lines, None)
        if got is None:
            return f"{_place(want)}: want {len(want_lines)} lines, the log ends after {number}"
        for key, value in want.items():
            if key not in got:
                return f"{_place(want)}: {key}: want {value!r}, got no such key"
            if got[key] != value:
                return f"{_place(want)}: {key}: want {value!r}, got {got[key]!r}"
    return _surplus(len(want_lines), got_lines)


def _surplus(num_want: int, rest: Iterator[Line]) -> str | None:
    surplus = list(rest)
    if not surplus:
        return None
    return f"{_place(surplus[0])}: want {num_want} lines, the log goes on to {num_want + len(surplus)}"


def _place(line: Line) -> str:
    """Which line it is: of a scheduler's log a step, of a tree's an operation."""
    return f"step {line['step']}" if "step" in line else f"operation {line['i']}"
