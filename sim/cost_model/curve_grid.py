"""Points measured on a grid of any number of axes, whose lines need not be of one length, and what lies between.

A measured point is returned exactly. Between points time is linear along each axis. Beyond the last point of an axis
it grows as the roofline's floor does (roofline-normalised); below the first it is that of the first.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Container, Mapping
from enum import IntEnum
from typing import TypeAlias

Coordinates: TypeAlias = tuple[float, ...]
Floor: TypeAlias = Callable[..., float]
"""The least time of a shape by the data sheet, in the points' unit."""


class Basis(IntEnum):
    """What a predicted time rests on, the best first."""

    MEASURED = 0
    INTERPOLATED = 1
    EXTRAPOLATED = 2
    DATA_SHEET = 3


Leaf: TypeAlias = tuple[float, Basis]


class _Line:
    """One axis: coordinates in order, and below each a time or the line of the next axis."""

    __slots__ = ("below", "xs")

    def __init__(self, points: Mapping[tuple[int, ...], Leaf]) -> None:
        parts: dict[int, dict[tuple[int, ...], Leaf]] = {}
        for shape, leaf in points.items():
            parts.setdefault(shape[0], {})[shape[1:]] = leaf
        self.xs = sorted(parts)
        self.below: list[_Line | Leaf] = [parts[x][()] if () in parts[x] else _Line(parts[x]) for x in self.xs]


class CurveGrid:
    """The curve through some points, each a shape of the same number of axes.

    Those that are `derived` were not measured themselves, and count as interpolated.
    """

    def __init__(
        self, points: Mapping[tuple[int, ...], float], floor: Floor, derived: Container[tuple[int, ...]] = ()
    ) -> None:
        assert points, "a curve without points"
        bases = (Basis.INTERPOLATED if shape in derived else Basis.MEASURED for shape in points)
        self._root = _Line(dict(zip(points, zip(points.values(), bases, strict=True), strict=True)))
        self._floor = floor

    def at(self, shape: Coordinates) -> tuple[float, Basis]:
        """Time at a shape, and what it rests on."""
        return self._at(self._root, (), shape)

    def coordinates(self, first: int) -> set[int]:
        """Where the second axis has points, on the lines between which `first` lies."""
        xs, found = self._root.xs, set()
        for i in {max(bisect_left(xs, first) - 1, 0), min(bisect_left(xs, first), len(xs) - 1)}:
            line = self._root.below[i]
            assert isinstance(line, _Line)
            found.update(line.xs)
        return found

    def _at(self, line: _Line | Leaf, prefix: Coordinates, rest: Coordinates) -> tuple[float, Basis]:
        if isinstance(line, tuple):
            return line
        x, rest = rest[0], rest[1:]
        xs = line.xs
        i = bisect_left(xs, x)
        if i == len(xs):
            return self._beyond(line, prefix, x, rest)
        time, basis = self._at(line.below[i], (*prefix, xs[i]), rest)
        if xs[i] == x:
            return time, basis
        if i == 0:
            return time, Basis.EXTRAPOLATED
        left, other = self._at(line.below[i - 1], (*prefix, xs[i - 1]), rest)
        time = left + (time - left) * ((x - xs[i - 1]) / (xs[i] - xs[i - 1]))
        return time, max(basis, other, Basis.INTERPOLATED)

    def _beyond(self, line: _Line, prefix: Coordinates, x: float, rest: Coordinates) -> tuple[float, Basis]:
        last = line.xs[-1]
        time, _ = self._at(line.below[-1], (*prefix, last), rest)
        floor = self._floor(*prefix, last, *rest)
        growth = self._floor(*prefix, x, *rest) / floor if floor else x / max(last, 1)
        return time * max(growth, 1.0), Basis.EXTRAPOLATED
