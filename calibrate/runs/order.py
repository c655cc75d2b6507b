"""Checks a request's times against one another, and puts requests in order of arrival with the first at time 0."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from .measured_run import MeasuredRequest
from .reading import Row

_TIMES = ("arrival_s", "queued_s", "scheduled_s", "first_token_s", "last_token_s")
_SLACK_S = 1e-3
"""Stamps of two clocks, brought together by the least difference, may cross by this much."""


def check_times(request: MeasuredRequest, row: Row) -> None:
    """Each moment comes after the one before, and a request that has an output has tokens. Raises RunError."""
    known = [(name, time) for name in _TIMES if (time := getattr(request, name)) is not None]
    for (earlier, before), (later, after) in pairwise(known):
        if after < before - _SLACK_S:
            raise row.error(None, f"{later} is {before - after:.6g} s before {earlier}: one of the two is wrong")


def from_first_arrival(requests: Iterable[MeasuredRequest]) -> tuple[MeasuredRequest, ...]:
    """In order of arrival, times counted from the first one; intended times from the first intended."""
    ordered = sorted(requests, key=lambda request: request.arrival_s)
    start_s = ordered[0].arrival_s
    return tuple(_shifted(request, start_s) for request in ordered)


def _shifted(request: MeasuredRequest, start_s: float) -> MeasuredRequest:
    def since(time_s: float | None) -> float | None:
        return None if time_s is None else time_s - start_s

    return replace(
        request,
        arrival_s=request.arrival_s - start_s,
        queued_s=since(request.queued_s),
        scheduled_s=since(request.scheduled_s),
        first_token_s=since(request.first_token_s),
        last_token_s=since(request.last_token_s),
    )
