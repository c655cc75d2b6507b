"""Plays a trace: each row is a request at its own time, stretched by `time_scale`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from ...policies.core.request import Arrival
from ..schema_workload import TraceSettings
from ..traces.azure import read_azure
from ..traces.hash_ids import read_hash_ids
from ..traces.mooncake import read_mooncake
from ..traces.rows import TraceRow
from .request_making import make_arrival

_DEFAULT_BLOCK_TOKENS = 16  # vLLM's block, and that of the LMCache agent trace

_in_order_of_time = attrgetter("time_ns")


class _Survey(NamedTuple):
    """What one pass over a trace found."""

    num_rows: int
    num_back_in_time: int
    first_back: int | None
    """Row, from 1, of the first that goes back in time."""
    earliest_ns: int


class TraceWorkload:
    """A trace, read once to check every row and once more to play it; a sorted one is never held in memory.

    Mooncake and hash-id times are offsets and stay as given; Azure's are dates, so the earliest row is time
    0.
    """

    def __init__(self, settings: TraceSettings, path: Path, warn: Callable[[str], None]) -> None:
        """Checks all rows that will be played: ScenarioError names file, line and field.

        `warn` gets one sentence where the rows are not in order of time; they are then sorted, equal times
        in the file's order.
        """
        self._settings = settings
        self._path = path
        survey = _survey(self._rows())
        self._sorted = survey.num_back_in_time == 0
        self._origin_ns = survey.earliest_ns if settings.format == "azure" else 0
        if not self._sorted:
            warn(
                f"{path}: row {survey.first_back}: {survey.num_back_in_time} of {survey.num_rows} rows "
                "go back in time; sorted by time"
            )

    def arrivals(self) -> Iterator[Arrival]:
        """All requests in order of time; a new iterator yields the same ones."""
        scale, rule = self._settings.time_scale, self._settings.max_tokens
        rows = self._rows() if self._sorted else sorted(self._rows(), key=_in_order_of_time)
        for index, row in enumerate(rows):
            time_ns = row.time_ns - self._origin_ns
            if scale != 1:
                time_ns = round(time_ns * scale)
            yield make_arrival(index, time_ns, row.prompt, row.output_tokens, rule, session=row.session)

    def on_finish(self, request_id: str, now_ns: int) -> Iterable[Arrival]:
        """Nothing: the trace plays on."""
        return ()

    def _rows(self) -> Iterator[TraceRow]:
        return islice(_reader(self._settings)(self._path), self._settings.limit)


def _reader(settings: TraceSettings) -> Callable[[Path], Iterator[TraceRow]]:
    if settings.format == "azure":
        return read_azure
    if settings.format == "mooncake":
        return read_mooncake
    return partial(read_hash_ids, block_tokens=settings.block_tokens or _DEFAULT_BLOCK_TOKENS)


def _survey(rows: Iterator[TraceRow]) -> _Survey:
    earliest_ns = latest_ns = None
    num_rows = num_back = 0
    first_back = None
    for num_rows, row in enumerate(rows, start=1):
        time_ns = row.time_ns
        if latest_ns is None or earliest_ns is None:
            earliest_ns = latest_ns = time_ns
        elif time_ns < latest_ns:
            num_back += 1
            first_back = first_back or num_rows
            earliest_ns = min(earliest_ns, time_ns)
        else:
            latest_ns = time_ns
    return _Survey(num_rows, num_back, first_back, earliest_ns or 0)
