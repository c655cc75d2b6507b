"""A summary as one row of a table: `{"ttft_s": {"p99": 1.7}}` becomes the column `ttft_s.p99`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

INTERVALS = "intervals_95."

Scalar = str | int | float | bool | None


def flat(summary: Mapping[str, Any]) -> dict[str, Scalar]:
    """The figures by their path; an interval is two columns, `.low` and `.high`, also where there is none."""
    return dict(_figures(summary, ""))


def difference(one: Mapping[str, Scalar], other: Mapping[str, Scalar]) -> str | None:
    """In which key two flattened mappings differ, in words; None where they are alike."""
    for key in sorted([*one, *other], key=lambda key: key.count(".")):
        if one.get(key) != other.get(key):
            return f"{key} is {_said(one, key)} in the one and {_said(other, key)} in the other"
    return None


def _said(flattened: Mapping[str, Scalar], path: str) -> object:
    """What stands at a path, a mapping put together again."""
    below = {key.removeprefix(f"{path}."): value for key, value in flattened.items() if key.startswith(f"{path}.")}
    return below or flattened.get(path, "not set")


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
