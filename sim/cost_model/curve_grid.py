"""Points measured on a grid of any number of axes, whose lines need not be of one length, and what lies between.

A measured point is returned exactly. Between points time is linear along each axis. Beyond the last point of an axis
it grows as the roofline's floor does (roofline-normalised); below the first it is that of the first.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Container, Mapping
from enum import IntEnum
from typing import Any, TypeAlias

Coordinates: TypeAlias = tuple[float, ...]
Floor: TypeAlias = Callable[..., float]
"""The least time of a shape by the data sheet, in the points' unit."""


class Basis(IntEnum):
    """What a predicted time rests on, the best first."""

    MEASURED = 0
    INTERPOLATED = 1
    EXTRAPOLATED = 2
    DATA_SHEET = 3


Priced: TypeAlias = tuple[float, Basis]


class _Line:
    """One axis: coordinates in order, and below each a time or the line of the next axis."""

    __slots__ = ("below", "xs")

    def __init__(self, points: Mapping[tuple[int, ...], float]) -> None:
        parts: dict[int, dict[tuple[int, ...], float]] = {}
        for shape, time in points.items():
            parts.setdefault(shape[0], {})[shape[1:]] = time
        self.xs = sorted(parts)
        self.below: list[Any] = [parts[x][()] if () in parts[x] else _Line(parts[x]) for x in self.xs]


class CurveGrid:
    """The curve through some points, each a shape of the same number of axes.

    Those that are `derived` were not measured themselves, and count as interpolated.
    """

    def __init__(
        self, points: Mapping[tuple[int, ...], float], floor: Floor, derived: Container[tuple[int, ...]] = ()
    ) -> None:
        assert points, "a curve without points"
        self._root = _Line(points)
        self._points: Mapping[Any, float] = points
        self._derived = derived
        self._floor = floor

    def at(self, shape: Coordinates) -> Priced:
        """Time at a shape, and what it rests on."""
        time = self._points.get(shape)
        if time is not None:
            return time, Basis.INTERPOLATED if shape in self._derived else Basis.MEASURED
        time = _between(self._root, shape, 0)
        if time is not None:
            return time, Basis.INTERPOLATED
        return self._outside(self._root, shape, 0), Basis.EXTRAPOLATED

    def coordinates(self, first: int) -> set[int]:
        """Where the second axis has points, on the lines between which `first` lies."""
        xs, found = self._root.xs, set()
        for i in {max(bisect_left(xs, first) - 1, 0), min(bisect_left(xs, first), len(xs) - 1)}:
            line = self._root.below[i]
            assert isinstance(line, _Line)
            found.update(line.xs)
        return found

    def _outside(self, line: _Line, shape: Coordinates, axis: int) -> float:
        """Time at a shape of which some coordinate lies beyond the ends of the axes from `axis` on."""
        x, xs = shape[axis], line.xs
        i = bisect_left(xs, x)
        if i == len(xs):
            return self._at_node(line, i - 1, shape, axis) * self._growth(shape, axis, xs[-1])
        right = self._at_node(line, i, shape, axis)
        if xs[i] == x or i == 0:
            return right
        left = self._at_node(line, i - 1, shape, axis)
        return left + (right - left) * ((x - xs[i - 1]) / (xs[i] - xs[i - 1]))

    def _at_node(self, line: _Line, i: int, shape: Coordinates, axis: int) -> float:
        """Time where a line's axis has its i-th coordinate, the others as asked for."""
        below = line.below[i]
        if not isinstance(below, _Line):
            return float(below)
        return self._outside(below, (*shape[:axis], line.xs[i], *shape[axis + 1 :]), axis + 1)

    def _growth(self, shape: Coordinates, axis: int, last: int) -> float:
        """By how much the floor grows from an axis' last coordinate to the shape's."""
        floor = self._floor(*shape[:axis], last, *shape[axis + 1 :])
        growth = self._floor(*shape) / floor if floor else shape[axis] / max(last, 1)
        return max(growth, 1.0)


def _between(line: _Line, shape: Coordinates, axis: int) -> float | None:
    """Time at a shape between measured ones; None where it lies outside of them on some axis."""
    x, xs, below = shape[axis], line.xs, line.below
    i = bisect_left(xs, x)
    if i == len(xs):
        return None
    axis += 1
    is_last = axis == len(shape)
    right = below[i] if is_last else _between(below[i], shape, axis)
    x1 = xs[i]
    if x1 == x or right is None:
        return right
    if i == 0:
        return None
    left = below[i - 1] if is_last else _between(below[i - 1], shape, axis)
    if left is None:
        return None
    x0 = xs[i - 1]
    return left + (right - left) * ((x - x0) / (x1 - x0))
