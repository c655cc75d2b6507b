"""Says in words where two decision logs part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def first_difference(want_lines: Sequence[Mapping[str, Any]], got_lines: Sequence[Mapping[str, Any]]) -> str | None:
    """The first step and key in which the logs differ, with both values; None if they agree.

    Only the keys of a wanted line count. A log that ends early or late differs there.
    """
    for want, got in zip(want_lines, got_lines, strict=False):
        for key, value in want.items():
            if key not in got:
                return f"step {want['step']}: {key}: want {value!r}, got no such key"
            if got[key] != value:
                return f"step {want['step']}: {key}: want {value!r}, got {got[key]!r}"
    return _length_difference(want_lines, got_lines)


def _length_difference(want_lines: Sequence[Mapping[str, Any]], got_lines: Sequence[Mapping[str, Any]]) -> str | None:
    num_want, num_got = len(want_lines), len(got_lines)
    if num_want > num_got:
        return f"step {want_lines[num_got]['step']}: want {num_want} lines, the log ends after {num_got}"
    if num_want < num_got:
        return f"step {got_lines[num_want]['step']}: want {num_want} lines, the log goes on to {num_got}"
    return None
