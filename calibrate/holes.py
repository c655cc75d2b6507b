"""Fills holes in the grid of attention: shapes that were not measured but stand between measured ones.

Decodes alone read so many tokens of context, and those are all that matters to a cache: a hole lies between batches
that read as many. Elsewhere, and where there are none, its time is the median of the linear interpolations along the
axes on which it has neighbours, two at least, the lower of two: a chord lies above the mostly convex curve, and a kink
along one axis does not spoil what the others tell.
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
    """Times of the holes in a grid of (sum of q, prior KV, decodes, mean context), none of them measured."""
    lines, found = _Lines(points), {}
    for shape in _holes(points):
        time = None if shape[0] else lines.among_equal_reads(shape)
        if time is None:
            estimates = list(lines.along_axes(shape))
            time = median_low(estimates) if len(estimates) >= FEWEST_AXES else None
        if time is not None:
            found[shape] = time
    return found


class _Lines:
    """The measured points along each axis, by the other coordinates, and decodes alone by what they read."""

    def __init__(self, points: Points) -> None:
        self._points = points
        self._lines: dict[tuple[int, Shape], list[int]] = {}
        self._reads: dict[int, list[int]] = {}
        for shape in sorted(points):
            for axis, x in enumerate(shape):
                self._lines.setdefault((axis, _without(shape, axis)), []).append(x)
            if not shape[0]:
                self._reads.setdefault(shape[2] * shape[3], []).append(shape[2])

    def along_axes(self, shape: Shape) -> Iterator[float]:
        """Linear interpolations at a shape, along each axis on which it stands between two points."""
        for axis, x in enumerate(shape):
            pair = _around(self._lines.get((axis, _without(shape, axis)), []), x)
            if pair is not None:
                left, right = (self._points[(*shape[:axis], end, *shape[axis + 1 :])] for end in pair)
                yield left + (right - left) * (x - pair[0]) / (pair[1] - pair[0])

    def among_equal_reads(self, shape: Shape) -> float | None:
        """Linear in the number of decodes between two batches that read as much context; None without them."""
        context = shape[2] * shape[3]
        pair = _around(self._reads.get(context, []), shape[2])
        if pair is None:
            return None
        left, right = (self._points[(0, 0, n, context // n)] for n in pair)
        return left + (right - left) * (shape[2] - pair[0]) / (pair[1] - pair[0])


def _around(xs: list[int], x: int) -> tuple[int, int] | None:
    """The neighbours between which x stands."""
    i = bisect_left(xs, x)
    return (xs[i - 1], xs[i]) if 0 < i < len(xs) and xs[i] != x else None


def _without(shape: Shape, axis: int) -> Shape:
    return shape[:axis] + shape[axis + 1 :]


def _holes(points: Points) -> Iterable[Shape]:
    """Every combination of coordinates that was not measured."""
    axes = [sorted(set(xs)) for xs in zip(*points, strict=True)]
    return (shape for shape in product(*axes) if shape not in points)
