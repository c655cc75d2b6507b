"""One row of a trace, and the checks that a row's fields share."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ...policies.core.request import Prompt
from ..complaints import shown
from ..errors import ScenarioError

_MAX_NS = 2**63 - 1


class TraceRow(NamedTuple):
    """A request as a trace tells it; one without prompt or output is still a row, refused and counted."""

    time_ns: int
    """On the trace's own clock."""
    prompt: Prompt
    output_tokens: int
    session: str | None = None


def row_error(path: Path, line: int, field: str | None, message: str) -> ScenarioError:
    """What is wrong with one line of a trace."""
    return ScenarioError(path, f"line {line}: {field}" if field else f"line {line}", message)


def nanoseconds(value: object, unit_ns: int, path: Path, line: int, field: str) -> int:
    """A timestamp in nanoseconds: a finite number of units, not negative, within 292 years."""
    return nanoseconds_of(value, unit_ns, lambda says: row_error(path, line, field, says))


def num_tokens(value: object, path: Path, line: int, field: str) -> int:
    """A number of tokens, 0 allowed."""
    return tokens_of(value, lambda says: row_error(path, line, field, says))


def nanoseconds_of(value: object, unit_ns: int, error: Callable[[str], ScenarioError]) -> int:
    """The same where a field is told otherwise than by its line: `error` makes what is raised of what is wrong."""
    if type(value) is not int and not (type(value) is float and math.isfinite(value)):
        raise error(f"must be a finite number, not {shown(value)}")
    time_ns = value * unit_ns
    if not 0 <= time_ns <= _MAX_NS:
        raise error(f"{shown(value)} is out of range: must be at least 0, within 292 years")
    return round(time_ns)


def tokens_of(value: object, error: Callable[[str], ScenarioError]) -> int:
    """A number of tokens, told as `nanoseconds_of` does."""
    if type(value) is not int:
        raise error(f"must be a whole number, not {shown(value)}")
    if value < 0:
        raise error(f"{value} is out of range: must be at least 0")
    return value
