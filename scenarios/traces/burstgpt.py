"""Reads BurstGPT (HPMLL/BurstGPT): CSV with `Timestamp` in s, `Request tokens`, `Response tokens`.

They tell lengths only, so no prompt shares anything. A failed call has 0 response tokens: it is a row all the same,
refused and counted. Files that have a `Session ID` keep it as a label; other columns (model, elapsed time, total,
log type) are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ...policies.core.request import Prompt
from ..complaints import shown
from ..content_ids import unique_prompt
from .cells import count, read_cells
from .objects import label
from .rows import TraceRow, nanoseconds, row_error

_COLUMNS = ("Timestamp", "Request tokens", "Response tokens")
_NS = 1_000_000_000


def read_burstgpt(path: Path) -> Iterator[TraceRow]:
    """The rows in the file's order; ScenarioError names file, line and column."""
    for index, (line, cells) in enumerate(read_cells(path, _COLUMNS, ("Session ID",))):
        time, prompt, output, session = cells
        prompt_tokens = count(prompt, path, line, "Request tokens")
        yield TraceRow(
            _time_ns(time, path, line),
            Prompt(((unique_prompt(index), 0, prompt_tokens),)),
            count(output, path, line, "Response tokens"),
            label(session.strip() or None, path, line, "Session ID"),
        )


def _time_ns(cell: str, path: Path, line: int) -> int:
    """`5` or `5.25`, in seconds."""
    try:
        if "_" in cell:  # which Python would read as a number
            raise ValueError
        seconds = int(cell) if cell.isdecimal() and len(cell) <= 18 else float(cell)
    except ValueError:
        raise row_error(path, line, "Timestamp", f"must be a number of seconds, not {shown(cell)}") from None
    return nanoseconds(seconds, _NS, path, line, "Timestamp")
