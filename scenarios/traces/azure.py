"""Reads the Azure LLM inference traces: CSV with `TIMESTAMP`, `ContextTokens`, `GeneratedTokens`.

They tell lengths only, so no prompt shares anything. Times are those of the calendar, in nanoseconds since
year 1.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from ...policies.core.request import Prompt
from ..complaints import shown
from ..content_ids import unique_prompt
from .cells import count, read_cells
from .rows import TraceRow, row_error

_COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
_NS = 1_000_000_000
_TIMESTAMP = re.compile(
    r"(\d{4}-\d\d-\d\d)[ T]([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(?:\.(\d{1,9}))?(?:Z|([+-])(\d\d):(\d\d))?",
    re.ASCII,
)


def read_azure(path: Path) -> Iterator[TraceRow]:
    """The rows in the file's order; ScenarioError names file, line and field."""
    for index, (line, (time, prompt, output)) in enumerate(read_cells(path, _COLUMNS)):
        prompt_tokens = count(prompt, path, line, "ContextTokens")
        yield TraceRow(
            _calendar_ns(time, path, line),
            Prompt(((unique_prompt(index), 0, prompt_tokens),)),
            count(output, path, line, "GeneratedTokens"),
        )


def _calendar_ns(cell: str, path: Path, line: int) -> int:
    """`2023-11-16 18:15:46.6805900`, with up to 9 decimals and maybe a time zone."""
    match = _TIMESTAMP.fullmatch(cell.strip())
    day_ns = _day_ns(match[1]) if match else None
    if match is None or day_ns is None:
        says = f"must be a time such as 2023-11-16 18:15:46.6805900, not {shown(cell)}"
        raise row_error(path, line, "TIMESTAMP", says)
    hours, minutes, seconds, decimals, sign, zone_hours, zone_minutes = match.groups()[1:]
    time_ns = day_ns + (int(hours) * 3600 + int(minutes) * 60 + int(seconds)) * _NS
    if decimals:
        time_ns += int(decimals.ljust(9, "0"))
    if sign:
        ahead_ns = (int(zone_hours) * 60 + int(zone_minutes)) * 60 * _NS
        time_ns += -ahead_ns if sign == "+" else ahead_ns
    return time_ns


@lru_cache(maxsize=64)
def _day_ns(text: str) -> int | None:
    """Nanoseconds from the year 1 to that day; None where the calendar has no such day."""
    try:
        return datetime.date.fromisoformat(text).toordinal() * 86_400 * _NS
    except ValueError:
        return None
