"""A linear layer's time by its rows on a CPU, where a library multiplies them in groups of so many, and the rest apart.

    time = line through whole groups + extra [rows mod group]

Rows that are left over make a group of their own, which takes about as long as a whole one, or several.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Mapping, Sequence

from .curve_grid import Basis, CurveGrid, Floor, Priced


class GroupedCurve:
    """The curve through points of so many rows.

    Measured points are exact. Below the first whole group and beyond the last one it is as `CurveGrid` says.
    """

    def __init__(
        self,
        points: Mapping[tuple[int, ...], float],
        floor: Floor,
        extra: Sequence[float],
        derived: Container[tuple[int, ...]] = (),
    ) -> None:
        """`extra`: by rows left over, in the points' unit; its length is the group's, its first is 0."""
        self._plain = CurveGrid(points, floor, derived)
        self._points = points
        self._line = whole_groups({shape[0]: time for shape, time in points.items()}, len(extra))
        self._extra = extra

    def at(self, shape: tuple[int, ...]) -> Priced:
        """Time at a size, and what it rests on."""
        if shape in self._points:
            return self._plain.at(shape)
        base = on_line(self._line, shape[0])
        if base is None:
            return self._plain.at(shape)
        return base + self._extra[shape[0] % len(self._extra)], Basis.INTERPOLATED


def whole_groups(times: Mapping[int, float], group: int) -> list[tuple[int, float]]:
    """Points of whole groups, ascending."""
    return sorted((size, time) for size, time in times.items() if size % group == 0)


def on_line(line: Sequence[tuple[int, float]], size: int) -> float | None:
    """Time at a size on the straight lines between points; None beyond their ends."""
    i = bisect_left(line, (size,))
    if i < len(line) and line[i][0] == size:
        return line[i][1]
    if not 0 < i < len(line):
        return None
    (x0, t0), (x1, t1) = line[i - 1], line[i]
    return t0 + (t1 - t0) * ((size - x0) / (x1 - x0))
