"""A summary as one row of a table: `{"ttft_s": {"p99": 1.7}}` becomes the column `ttft_s.p99`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

INTERVALS = "intervals_95."

Scalar = str | int | float | bool | None


def flat(summary: Mapping[str, Any]) -> dict[str, Scalar]:
    """The figures by their path; an interval is two columns, `.low` and `.high`, also where there is none."""
    return dict(_figures(summary, ""))


def _figures(value: Any, path: str) -> Iterator[tuple[str, Scalar]]:
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from _figures(below, f"{path}.{key}" if path else str(key))
    elif path.startswith(INTERVALS):
        low, high = value or (None, None)
        yield from ((f"{path}.low", low), (f"{path}.high", high))
    elif isinstance(value, list):
        yield from _figures(dict(enumerate(value)), path)
    else:
        yield path, value
