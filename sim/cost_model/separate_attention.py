"""How long attention takes in an engine that launches decodes and chunks of prompts apart: the two add, chunk by chunk.

Each chunk is priced by its own new and cached tokens. Chunks of one launch do not pay for launching again, which the
profile says (`shared_us`). A chunk of one token is a decode to such an engine.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

from .curve_grid import Basis, CurveGrid, Floor, Priced

Points = Mapping[tuple[int, ...], float]
Line: TypeAlias = Sequence[tuple[int, float]]


class SeparateAttention:
    """Times of attention in one layer; `points` and `floor` are by (q, prior KV, decodes, their mean context)."""

    def __init__(
        self, points: Points, floor: Floor, derived: Container[tuple[int, ...]] = (), shared_us: float = 0.0
    ) -> None:
        prefill = {shape[:2]: time for shape, time in points.items() if not shape[2]}
        decode = {shape[2:]: time for shape, time in points.items() if not shape[0]}
        apart = {shape for shape in prefill if (*shape, 0, 0) in derived}
        alone = {shape for shape in decode if (0, 0, *shape) in derived}
        self._chunks = ExtendCurve(prefill, lambda q, kv: floor(q, kv, 0, 0), apart) if prefill else None
        self.decode = CurveGrid(decode, lambda n, context: floor(0, 0, n, context), alone) if decode else None
        self._shared_us = shared_us

    def at(self, q_tokens: int, kv_tokens: int, num_decodes: int, mean_context: float) -> Priced:
        """Time of one layer with one chunk, in the points' unit."""
        return self.of_chunks([(q_tokens, kv_tokens)] if q_tokens else [], num_decodes, mean_context)

    def of_chunks(self, chunks: Sequence[tuple[int, int]], num_decodes: int, mean_context: float) -> Priced:
        """The same with any number of chunks, each `(q, kv)`."""
        singles = [kv + 1 for q, kv in chunks if q == 1]
        if singles:
            context = num_decodes * mean_context + sum(singles)
            num_decodes += len(singles)
            mean_context = context / num_decodes
        parts = [self._chunk(q, kv) for q, kv in chunks if q > 1]
        shared = self._shared_us * max(len(parts) - 1, 0)
        if num_decodes:
            assert self.decode is not None, "attention without timings of decodes"
            parts.append(self.decode.at((num_decodes, mean_context)))
        if not parts:
            return 0.0, Basis.MEASURED
        basis = max(basis for _, basis in parts)
        return sum(time for time, _ in parts) - shared, max(basis, Basis.INTERPOLATED) if shared else basis

    def _chunk(self, q_tokens: int, kv_tokens: int) -> Priced:
        assert self._chunks is not None, "attention without timings of prefill"
        return self._chunks.at(q_tokens, kv_tokens)


class ExtendCurve:
    """The time of one chunk by its new tokens q and its cached ones.

    A line of points has one q and several numbers of cached tokens, and is linear between them. Lines need not reach
    equally far: a chunk lies between the nearest two that have points on both sides of what it has cached. Work grows
    with q * kv + q^2 / 2, so that a straight line from one q to the next adds (q - q0) (q1 - q) / 2 pairs too many:
    they are taken off again, at the time that a pair takes there. Exact for any
    a + b q + c kv + d (q kv + q^2 / 2). Where there are no such lines it is as `CurveGrid` says of the longer ones.
    """

    def __init__(self, points: Points, floor: Floor, derived: Container[tuple[int, ...]] = ()) -> None:
        times: dict[int, dict[int, float]] = {}
        for (q, kv), time in points.items():
            times.setdefault(q, {})[kv] = time
        self._lines = {q: sorted(times[q].items()) for q in sorted(times)}
        self._long = [q for q, line in self._lines.items() if len(line) > 1]
        self._per_pair = [_per_pair(q0, self._lines[q0], q1, self._lines[q1]) for q0, q1 in pairwise(self._long)]
        far = {shape: time for shape, time in points.items() if shape[0] in self._long}
        self._grid = CurveGrid(far or points, floor, derived)
        self._points = points
        self._derived = derived

    def at(self, q_tokens: int, kv_tokens: int) -> Priced:
        """Time, and what it rests on."""
        shape = q_tokens, kv_tokens
        if shape in self._points:
            return self._points[shape], Basis.INTERPOLATED if shape in self._derived else Basis.MEASURED
        around = self._around(q_tokens, kv_tokens)
        if around is None:
            return self._grid.at(shape)
        q0, q1 = around
        before = _along(self._lines[q0], kv_tokens)
        if q0 == q1:
            return before, Basis.INTERPOLATED
        after = _along(self._lines[q1], kv_tokens)
        straight = before + (after - before) * (q_tokens - q0) / (q1 - q0)
        pairs = (q_tokens - q0) * (q1 - q_tokens) / 2
        time = straight - pairs * self._pair_at(q_tokens)
        return max(time, min(before, after)), Basis.INTERPOLATED

    def _pair_at(self, q_tokens: int) -> float:
        """Time of a pair where a chunk is so long: between the two lines around it that tell, or the nearest two."""
        if not self._per_pair:
            return 0.0
        return self._per_pair[min(max(bisect_left(self._long, q_tokens) - 1, 0), len(self._per_pair) - 1)]

    def _around(self, q_tokens: int, kv_tokens: int) -> tuple[int, int] | None:
        """The nearest lines on both sides, or twice the one of this q, that know as many cached tokens."""
        known = [q for q, line in self._lines.items() if line[0][0] <= kv_tokens <= line[-1][0]]
        i = bisect_left(known, q_tokens)
        if i == len(known):
            return None
        if known[i] == q_tokens:
            return q_tokens, q_tokens
        return (known[i - 1], known[i]) if i else None


def _along(line: Line, kv_tokens: int) -> float:
    """On a line that has points on both sides."""
    i = bisect_left(line, (kv_tokens,))
    right, after = line[i]
    if right == kv_tokens:
        return after
    left, before = line[i - 1]
    return before + (after - before) * (kv_tokens - left) / (right - left)


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
