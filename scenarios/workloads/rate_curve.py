"""A rate that changes over time in straight lines, and when the n-th request is due under it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import count, pairwise

from ..schema_pacing import DayRate, PointsRate, RampRate, RateCurve

Line = tuple[float, float, float, float]
"""A straight piece of the curve: from time and rate to time and rate, in seconds and requests a second."""


def due_times(curve: RateCurve, ranks: Iterable[float]) -> Iterator[float]:
    """When each rank (not falling, from 0) is reached, in seconds: inversion of the number expected by then.

    A process of rate 1 sent through this has the curve's rate at every moment, and keeps its kind: Poisson stays
    Poisson.
    """
    lines = _lines(curve)
    line = next(lines)
    before, within = 0.0, _area(line)
    for rank in ranks:
        while rank - before > within:
            before += within
            line = next(lines)
            within = _area(line)
        yield _reached(line, rank - before)


def _lines(curve: RateCurve) -> Iterator[Line]:
    """The curve's pieces in order of time, without end."""
    if isinstance(curve, DayRate):
        yield from _days(curve.day.rates, curve.day.length_s)
    elif isinstance(curve, RampRate):
        ramp = curve.ramp
        yield (0.0, ramp.start, ramp.over_s, ramp.end)
        yield (ramp.over_s, ramp.end, math.inf, ramp.end)
    elif isinstance(curve, PointsRate):
        points = [(point.at_s, point.rate) for point in curve.points]
        yield from ((*a, *b) for a, b in pairwise(points))
        at_s, rate = points[-1]
        yield (at_s, rate, math.inf, rate)


def _days(rates: list[float], length_s: float) -> Iterator[Line]:
    steps = len(rates)
    for day in count():
        for step, (a, b) in enumerate(pairwise([*rates, rates[0]])):
            start, end = day * steps + step, day * steps + step + 1
            yield (start * length_s / steps, a, end * length_s / steps, b)


def _area(line: Line) -> float:
    """Requests expected along it."""
    start_s, start_rate, end_s, end_rate = line
    return (start_rate + end_rate) / 2 * (end_s - start_s)


def _reached(line: Line, area: float) -> float:
    """When so many of its requests have come: the root of start x t + slope / 2 x t^2 = area."""
    start_s, start_rate, end_s, end_rate = line
    if area <= 0:
        return start_s
    slope = (end_rate - start_rate) / (end_s - start_s)
    root = math.sqrt(max(0.0, start_rate * start_rate + 2 * slope * area))
    return min(start_s + 2 * area / (start_rate + root), end_s)
