"""Finds the groups of rows in which a CPU's library multiplies matrices, and what rows that are left over cost."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

from ..sim.cost_model.grouped_curve import on_line, whole_groups
from ..sim.cost_model.timings import Shape

GROUPS = (2, 3, 4, 5, 6, 8)
FEWEST = 2
"""Points of each number of rows left over without which a group is not considered."""
DECISIVE = 0.6
"""A group is one where points are told at least so much better with it: noise alone makes some seem a little better."""


def best_group(points: Mapping[Shape, float]) -> int | None:
    """The group with which each point is best told without it; None where a line through all tells them as well."""
    times = {shape[0]: time for shape, time in points.items()}
    ratios = {group: ratio for group in GROUPS if (ratio := _ratio(times, group)) is not None}
    group = min(ratios, key=lambda group: ratios[group], default=None)
    return None if group is None or ratios[group] > DECISIVE else group


def rows_left_over(points: Mapping[Shape, float], group: int) -> tuple[float, ...] | None:
    """By rows left over, the median of what is measured beyond the line through whole groups, not below 0.

    None where of some number of them nothing is known.
    """
    return _extra({shape[0]: time for shape, time in points.items()}, group, fewest=1)


def _ratio(times: Mapping[int, float], group: int) -> float | None:
    """Sum of |predicted / measured - 1|, each point left out, by groups, as a share of that by a line through all.

    Of the points that groups have something to say of. None where they say nothing, or the line is exact.
    """
    if _extra(times, group, FEWEST) is None:
        return None
    grouped = plain = 0.0
    for size, time in times.items():
        others = {other: t for other, t in times.items() if other != size}
        on_all, extra = on_line(sorted(others.items()), size), _extra(others, group, fewest=1)
        base = on_line(whole_groups(others, group), size)
        if on_all is not None and base is not None and extra is not None:
            grouped += abs((base + extra[size % group]) / time - 1)
            plain += abs(on_all / time - 1)
    return grouped / plain if plain else None


def _extra(times: Mapping[int, float], group: int, fewest: int) -> tuple[float, ...] | None:
    beyond: dict[int, list[float]] = {rest: [] for rest in range(1, group)}
    line = whole_groups(times, group)
    for size, time in times.items():
        base = on_line(line, size)
        if size % group and base is not None:
            beyond[size % group].append(time - base)
    if min(map(len, beyond.values())) < fewest:
        return None
    return (0.0, *(round(max(median(found), 0.0), 3) for found in beyond.values()))
