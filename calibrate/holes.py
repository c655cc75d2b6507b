"""Fills holes in the grid of attention: shapes that were not measured but stand between measured ones.

Decodes alone read so many tokens of context, and whether those fit a cache matters most: a hole lies between batches
that read as many. What sets its batch apart from them shows at other reads and may be carried over: its ratios to them
at the next smaller and the next larger reads, their geometric mean; so may that to one batch where there is none on the
other side. It is where the measured points, each guessed without itself, come out better so.

Elsewhere, and where there are none, a hole's time is the median of the linear interpolations along the axes on which
it has neighbours, two at least, the lower of two: a chord lies above the mostly convex curve, and a kink along one axis
does not spoil what the others tell.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, product
from statistics import geometric_mean, median_low

from ..sim.cost_model.timings import Shape

Points = Mapping[Shape, float]
FEWEST_AXES = 2


def fill(points: Points) -> dict[Shape, float]:
    """Times of the holes in a grid of (sum of q, prior KV, decodes, mean context), none of them measured."""
    lines, found = _Lines(points), {}
    among = lines.carried_over if lines.is_carried_over() else lines.among_equal_reads
    for shape in _holes(points):
        time = None if shape[0] else among(shape)
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
            pair = _around([end for end in self._lines.get((axis, _without(shape, axis)), []) if end != x], x)
            if pair is not None:
                left, right = (self._points[(*shape[:axis], end, *shape[axis + 1 :])] for end in pair)
                yield left + (right - left) * (x - pair[0]) / (pair[1] - pair[0])

    def among_equal_reads(self, shape: Shape) -> float | None:
        """Linear in the number of decodes between two batches that read as much context; None without them."""
        num, reads = shape[2], shape[2] * shape[3]
        pair = _around(self._peers(num, reads), num)
        return None if pair is None else self._between(pair, num, reads)

    def carried_over(self, shape: Shape) -> float | None:
        """The same times what the batch is to them at other reads, or one batch that reads as much times that.

        None where there is nobody else, or one alone and nothing to carry over.
        """
        num, reads = shape[2], shape[2] * shape[3]
        among = self.among_equal_reads(shape)
        if among is not None:
            return among * geometric_mean(list(self._ratios(shape, None)) or [1.0])
        if not (peers := self._peers(num, reads)):
            return None
        nearest = min(peers, key=lambda peer: abs(math.log(peer / num)))
        ratios = list(self._ratios(shape, nearest))
        return self._time(nearest, reads) * geometric_mean(ratios) if ratios else None

    def is_carried_over(self) -> bool:
        """Whether that tells the measured times of decodes alone, each without itself, better on the whole."""
        plain, carried = [], []
        for shape, time in self._points.items():
            if not shape[0] and (guess := self.carried_over(shape)) is not None:
                other = self.among_equal_reads(shape) or next(self.along_axes(shape), None)
                if other is not None:
                    plain.append(abs(math.log(other / time)))
                    carried.append(abs(math.log(guess / time)))
        return sum(carried) < sum(plain)

    def _ratios(self, shape: Shape, peer: int | None) -> Iterator[float]:
        """A batch over its peers, or over the one peer, at the next smaller and the next larger reads that tell."""
        contexts = self._lines.get((3, _without(shape, 3)), [])
        i = bisect_left(contexts, shape[3])
        for side in (reversed(contexts[:i]), contexts[i:]):
            found = (self._ratio(shape[2], shape[2] * context, peer) for context in side if context != shape[3])
            yield from islice((ratio for ratio in found if ratio is not None), 1)

    def _ratio(self, num: int, reads: int, peer: int | None) -> float | None:
        peers = self._peers(num, reads)
        if peer is not None:
            return self._time(num, reads) / self._time(peer, reads) if peer in peers else None
        pair = _around(peers, num)
        return None if pair is None else self._time(num, reads) / self._between(pair, num, reads)

    def _peers(self, num: int, reads: int) -> list[int]:
        """Other batches that read as much."""
        return [other for other in self._reads.get(reads, []) if other != num]

    def _between(self, pair: tuple[int, int], num: int, reads: int) -> float:
        left, right = (self._time(end, reads) for end in pair)
        return left + (right - left) * (num - pair[0]) / (pair[1] - pair[0])

    def _time(self, num: int, reads: int) -> float:
        """Of a batch of so many decodes alone that reads so much."""
        return self._points[0, 0, num, reads // num]


def _around(xs: list[int], x: int) -> tuple[int, int] | None:
    """The neighbours between which x stands."""
    i = bisect_left(xs, x)
    return (xs[i - 1], xs[i]) if 0 < i < len(xs) and xs[i] != x else None


def _without(shape: Shape, axis: int) -> Shape:
    return shape[:axis] + shape[axis + 1 :]


def _holes(points: Points) -> Iterable[Shape]:
    """Every combination of coordinates that was not measured; nothing is cached before no queries."""
    axes = [sorted(set(xs)) for xs in zip(*points, strict=True)]
    return (shape for shape in product(*axes) if shape not in points and (shape[0] or not shape[1]))
