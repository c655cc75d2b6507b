"""Finds the groups of rows in which a CPU's library multiplies matrices, and what rows that are left over cost."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

from ..sim.cost_model.grouped_curve import on_line, whole_groups
from ..sim.cost_model.timings import Shape

GROUPS = (2, 3, 4, 5, 6, 8)
FEWEST = 2
"""Points of each number of rows left over below which nothing is said of it."""


def best_extra(points: Mapping[Shape, float]) -> tuple[float, ...] | None:
    """By rows left over, what they take beyond the line through whole groups; None where no group explains the points.

    The group is the one with which each point is best told without it, if that is better than a line through all.
    """
    times = {shape[0]: time for shape, time in points.items()}
    errors = {group: found for group in GROUPS if (found := _error(times, group)) is not None}
    if not errors:
        return None
    group = min(errors, key=lambda group: errors[group][0] / errors[group][1])
    grouped, plain = errors[group]
    return _extra(times, group) if grouped < plain else None


def _error(times: Mapping[int, float], group: int) -> tuple[float, float] | None:
    """Sums of |predicted / measured - 1|, each point left out: by groups, and on the line through all points.

    Of the points that groups have something to say of. None where residues lack points.
    """
    if _extra(times, group) is None:
        return None
    grouped = plain = 0.0
    for size, time in times.items():
        others = {other: t for other, t in times.items() if other != size}
        on_all, base, extra = on_line(sorted(others.items()), size), _base(others, group, size), _extra(others, group)
        if on_all is not None and base is not None and extra is not None:
            grouped += abs((base + extra[size % group]) / time - 1)
            plain += abs(on_all / time - 1)
    return (grouped, plain) if plain else None


def _base(times: Mapping[int, float], group: int, size: int) -> float | None:
    return on_line(whole_groups(times, group), size)


def _extra(times: Mapping[int, float], group: int) -> tuple[float, ...] | None:
    """Medians of what is measured above the line; None where too little is."""
    beyond: dict[int, list[float]] = {rest: [] for rest in range(1, group)}
    line = whole_groups(times, group)
    for size, time in times.items():
        base = on_line(line, size)
        if size % group and base is not None:
            beyond[size % group].append(time - base)
    if min(map(len, beyond.values())) < FEWEST:
        return None
    return (0.0, *(round(max(median(found), 0.0), 3) for found in beyond.values()))
