"""Points on lines that do not reach equally far, by two sizes, and what lies between them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

from .curve_grid import Basis, Coordinates, CurveGrid, Floor, Priced

Line: TypeAlias = Sequence[tuple[int, float]]
NEIGHBOURS = 2
"""Lines on each side whose points a slice between lines has as well."""


class RaggedCurve:
    """Times by two sizes, as attention's: decodes and their mean context, or a chunk's new and cached tokens.

    A line of points has one first size and several second ones, and is linear between them. What is asked for lies
    between the nearest two lines that have points on both sides of its second size; where there are none it is as
    `CurveGrid` says of the longer lines. Points are returned exactly.

    With `triangle` work grows with q * kv + q^2 / 2: a straight line from one q to the next adds (q - q0) (q1 - q) / 2
    pairs too many, and they are taken off again, at the time that a pair takes there. Exact for any
    a + b q + c kv + d (q kv + q^2 / 2).
    """

    def __init__(
        self,
        points: Mapping[tuple[int, ...], float],
        floor: Floor,
        derived: Container[tuple[int, ...]] = (),
        *,
        triangle: bool = False,
    ) -> None:
        times: dict[int, dict[int, float]] = {}
        for (first, second), time in points.items():
            times.setdefault(first, {})[second] = time
        self._lines = {first: sorted(times[first].items()) for first in sorted(times)}
        self._firsts = list(self._lines)
        self._long = [first for first, line in self._lines.items() if len(line) > 1]
        pairs = pairwise(self._long) if triangle else ()
        self._per_pair = [_per_pair(q0, self._lines[q0], q1, self._lines[q1]) for q0, q1 in pairs]
        far = {shape: time for shape, time in points.items() if shape[0] in self._long}
        self._grid = CurveGrid(far or points, floor, derived)
        self._points: Mapping[Coordinates, float] = {(float(a), float(b)): time for (a, b), time in points.items()}
        self._derived = derived

    def at(self, shape: Coordinates) -> Priced:
        """Time at two sizes, and what it rests on."""
        first, second = shape
        exact = self._points.get((first, second))
        if exact is not None:
            return exact, Basis.INTERPOLATED if shape in self._derived else Basis.MEASURED
        around = self._around(first, second)
        if around is None:
            return self._grid.at(shape)
        low, high = around
        before = _along(self._lines[low], second)
        if low == high:
            return before, Basis.INTERPOLATED
        after = _along(self._lines[high], second)
        straight = before + (after - before) * (first - low) / (high - low)
        time = straight - self._pair_at(first) * (first - low) * (high - first) / 2
        return max(time, min(before, after)), Basis.INTERPOLATED

    def coordinates(self, first: int) -> set[int]:
        """Second sizes of the points on the lines around a first one: where its slice may bend."""
        i = bisect_left(self._firsts, first)
        near = self._firsts[max(i - NEIGHBOURS, 0) : i + NEIGHBOURS]
        return {second for line in near for second, _ in self._lines[line]}

    def _pair_at(self, q_tokens: float) -> float:
        """Time of a pair where a chunk is so long: between the two lines around it that tell, or the nearest two."""
        if not self._per_pair:
            return 0.0
        return self._per_pair[min(max(bisect_left(self._long, q_tokens) - 1, 0), len(self._per_pair) - 1)]

    def _around(self, first: float, second: float) -> tuple[int, int] | None:
        """The nearest lines on both sides, or twice the one of this size, that reach as far and begin as early."""
        known = [at for at, line in self._lines.items() if line[0][0] <= second <= line[-1][0]]
        i = bisect_left(known, first)
        if i == len(known):
            return None
        if known[i] == first:
            return known[i], known[i]
        return (known[i - 1], known[i]) if i else None


def _along(line: Line, second: float) -> float:
    """On a line that has points on both sides."""
    i = bisect_left(line, (second,))
    right, after = line[i]
    if right == second:
        return after
    left, before = line[i - 1]
    return before + (after - before) * (second - left) / (right - left)


def _per_pair(q0: int, before: Line, q1: int, after: Line) -> float:
    """Time of a (query, key) pair between two lines: how much steeper the longer one rises with the cached tokens.

    Taken where as much is cached as the longer chunk has, or nearly: there the square matters.
    """
    low = max(before[0][0], after[0][0])
    most = min(before[-1][0], after[-1][0])
    high = min(most, max(q1, next((kv for kv, _ in after if kv > low), most)))
    if high <= low:
        return 0.0
    steeper = (_along(after, high) - _along(after, low)) - (_along(before, high) - _along(before, low))
    return max(steeper / ((q1 - q0) * (high - low)), 0.0)
