"""Plays a trace: each row is a request at its own time, stretched by `time_scale` or to a `rate`.

Rows of a format without times come at `rate`, as generated traffic does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from ...policies.core.request import Arrival
from ..errors import ScenarioError
from ..schema_workload import TEXT_FORMATS, UNTIMED_FORMATS, TraceSettings
from ..traces.formats import DATED, reader
from ..traces.rows import TraceRow
from ..traces.text import CHARS_PER_TOKEN, estimate_note
from .arrivals import arrival_times
from .request_making import make_arrival

_NS = 1_000_000_000

_in_order_of_time = attrgetter("time_ns")


class _Survey(NamedTuple):
    """What one pass over a trace found."""

    num_rows: int
    num_back_in_time: int
    first_back: int | None
    """Row, from 1, of the first that goes back in time."""
    earliest_ns: int
    latest_ns: int


class TraceWorkload:
    """A trace, read once to check every row and once more to play it; a sorted one is never held in memory.

    Azure's times are dates, so the earliest row is time 0; other times are offsets and stay as given.
    """

    def __init__(self, settings: TraceSettings, path: Path, seed: int, warn: Callable[[str], None]) -> None:
        """Checks all rows that will be played: ScenarioError names file, line and field.

        `warn` gets a sentence where the rows are not in order of time (they are then sorted, equal times in the
        file's order) and where lengths are estimates.
        """
        self._settings = settings
        self._path = path
        self._seed = seed
        survey = _survey(self._rows())
        self._sorted = survey.num_back_in_time == 0
        self._origin_ns = survey.earliest_ns if settings.format in DATED else 0
        self._scale = _scale(settings, survey, path)
        if not self._sorted:
            warn(
                f"{path}: row {survey.first_back}: {survey.num_back_in_time} of {survey.num_rows} rows "
                "go back in time; sorted by time"
            )
        if settings.format in TEXT_FORMATS:
            warn(f"{path}: {estimate_note(settings.chars_per_token or CHARS_PER_TOKEN)}")

    def arrivals(self) -> Iterator[Arrival]:
        """All requests in order of time; a new iterator yields the same ones."""
        rule = self._settings.max_tokens
        for index, (time_ns, row) in enumerate(self._timed()):
            yield make_arrival(index, time_ns, row.prompt, row.output_tokens, rule, session=row.session)

    def _timed(self) -> Iterator[tuple[int, TraceRow]]:
        """The rows with the times at which they are played."""
        asked = self._settings
        if asked.format in UNTIMED_FORMATS:
            assert asked.rate is not None  # the schema sees to it
            yield from zip(
                arrival_times(asked.arrivals or "poisson", asked.rate, self._seed), self._rows(), strict=False
            )
            return
        origin_ns, scale = self._origin_ns, self._scale
        for row in self._rows() if self._sorted else sorted(self._rows(), key=_in_order_of_time):
            time_ns = row.time_ns - origin_ns
            yield (time_ns if scale == 1 else round(time_ns * scale)), row

    def on_finish(self, request_id: str, now_ns: int) -> Iterable[Arrival]:
        """Nothing: the trace plays on."""
        return ()

    def _rows(self) -> Iterator[TraceRow]:
        return islice(reader(self._settings)(self._path), self._settings.limit)


def _scale(settings: TraceSettings, survey: _Survey, path: Path) -> float:
    """How much slower than recorded: `time_scale`, or what makes (rows - 1) / (last time - first time) the `rate`."""
    if settings.rate is None or settings.format in UNTIMED_FORMATS:
        return settings.time_scale
    span_s = (survey.latest_ns - survey.earliest_ns) / _NS
    if span_s == 0:
        raise ScenarioError(path, None, "workload.rate needs rows at two times at least; all have the same")
    return (survey.num_rows - 1) / settings.rate / span_s


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
    return _Survey(num_rows, num_back, first_back, earliest_ns or 0, latest_ns or 0)
