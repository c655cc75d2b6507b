"""How long attention takes in an engine that launches decodes and chunks of prompts apart: the two add, chunk by chunk.

Each chunk is priced by its own new and cached tokens. Chunks of one launch do not pay for launching again, which the
profile says (`shared_us`). A chunk of one token is a decode to such an engine.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Mapping, Sequence
from itertools import pairwise

from .curve_grid import Basis, CurveGrid, Floor, Priced

Points = Mapping[tuple[int, ...], float]


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

    Work grows with q * kv + q^2 / 2: linear between points along either axis but for the square. What a straight line
    between two numbers of new tokens adds to it, (q - q0) (q1 - q) / 2 pairs, is taken off again, at the time that a
    pair takes between these two lines of points. Exact for any a + b q + c kv + d (q kv + q^2 / 2).
    """

    def __init__(self, points: Points, floor: Floor, derived: Container[tuple[int, ...]] = ()) -> None:
        self._grid = CurveGrid(points, floor, derived)
        lines: dict[int, dict[int, float]] = {}
        for (q, kv), time in points.items():
            lines.setdefault(q, {})[kv] = time
        self._qs = sorted(lines)
        self._per_pair = [_per_pair(q0, lines[q0], q1, lines[q1]) for q0, q1 in pairwise(self._qs)]

    def at(self, q_tokens: int, kv_tokens: int) -> Priced:
        """Time, and what it rests on."""
        time, basis = self._grid.at((q_tokens, kv_tokens))
        i = bisect_left(self._qs, q_tokens)
        if not 0 < i < len(self._qs) or self._qs[i] == q_tokens:
            return time, basis
        left, right = self._qs[i - 1], self._qs[i]
        chord = self._per_pair[i - 1] * (q_tokens - left) * (right - q_tokens) / 2
        shorter = self._grid.at((left, kv_tokens))[0]
        return max(time - chord, min(time, shorter)), basis


def _per_pair(q0: int, before: Mapping[int, float], q1: int, after: Mapping[int, float]) -> float:
    """Time of a (query, key) pair between two lines: how much steeper the longer one rises with the cached tokens.

    Taken where as much is cached as the longer chunk has, or nearly: there the square matters.
    """
    both = sorted(before.keys() & after.keys())
    if len(both) < 2:
        return 0.0
    low = both[0]
    high = next((kv for kv in both[1:] if kv >= q1), both[-1])
    steeper = (after[high] - after[low]) - (before[high] - before[low])
    return max(steeper / ((q1 - q0) * (high - low)), 0.0)
