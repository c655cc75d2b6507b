"""Fills holes of a grid: shapes that were not measured but stand between measured ones along two axes or more.

The time is the median of the linear interpolations along those axes, the lower of two: a chord lies above the mostly
convex curve, and a kink along one axis (decodes that outgrow a
cache, say) does not spoil what the others tell.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from statistics import median_low

from ..sim.cost_model.timings import Shape

Points = Mapping[Shape, float]
FEWEST_AXES = 2


def fill(points: Points) -> dict[Shape, float]:
    """Times of the holes in a grid, none of them measured."""
    lines, found = _Lines(points), {}
    for shape in _holes(points):
        estimates = list(lines.estimates(shape))
        if len(estimates) >= FEWEST_AXES:
            found[shape] = median_low(estimates)
    return found


class _Lines:
    """The measured points along each axis, by the other coordinates."""

    def __init__(self, points: Points) -> None:
        self._points = points
        self._lines: dict[tuple[int, Shape], list[int]] = {}
        for shape in sorted(points):
            for axis, x in enumerate(shape):
                self._lines.setdefault((axis, _without(shape, axis)), []).append(x)

    def estimates(self, shape: Shape) -> Iterator[float]:
        """Linear interpolations at a shape, along each axis on which it stands between two points."""
        for axis, x in enumerate(shape):
            xs = self._lines.get((axis, _without(shape, axis)), [])
            i = bisect_left(xs, x)
            if 0 < i < len(xs):
                left, right = (self._points[(*shape[:axis], xs[j], *shape[axis + 1 :])] for j in (i - 1, i))
                yield left + (right - left) * (x - xs[i - 1]) / (xs[i] - xs[i - 1])


def _without(shape: Shape, axis: int) -> Shape:
    return shape[:axis] + shape[axis + 1 :]


def _holes(points: Points) -> Iterable[Shape]:
    """Every combination of coordinates that was not measured."""
    axes = [sorted(set(xs)) for xs in zip(*points, strict=True)]
    return (shape for shape in product(*axes) if shape not in points)
