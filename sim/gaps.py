"""The pooled gaps between output chunks: a weighted sample, since a token has no object."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .columns import Ints

MIN_PENDING = 1 << 17
"""Pairs that are held as they came; from then on only batches are."""
MIN_BATCHES = 40
"""In a run of more pairs than that; there may be up to twice as many."""


class Gaps(NamedTuple):
    """Distinct gaps in rising order, and how many tokens waited each."""

    gap_ns: Ints
    num_tokens: Ints


class GapPool:
    """Collects `(gap, count)` pairs in order of time, as batches in a row in which equal gaps are merged.

    A batch holds as many pairs as the next one; when there are twice `MIN_BATCHES` of them, neighbours are merged, so
    that a pair costs little however many there are, and memory is that of the distinct gaps of each batch.
    """

    def __init__(self) -> None:
        self._batches: list[Gaps] = []
        self._gaps = array("q")
        self._counts = array("q")
        self._limit = MIN_PENDING

    def add(self, gap_ns: int, count: int) -> None:
        """`count` tokens came `gap_ns` after the chunk before them."""
        self._gaps.append(gap_ns)
        self._counts.append(count)
        if len(self._gaps) >= self._limit:
            self._compact()

    def merged(self) -> Gaps:
        """All gaps so far."""
        return union([*self._batches, *self._pending(1)])

    def batches(self) -> list[Gaps]:
        """The same as batches in a row: their gaps come about equally often, but for the last one."""
        return [*self._batches, *self._pending(1 if self._batches else MIN_BATCHES)]

    def _pending(self, num_parts: int) -> list[Gaps]:
        """What is in no batch yet, cut into so many; empty ones are left out."""
        gaps, counts = (np.array(column, dtype=np.int64) for column in (self._gaps, self._counts))
        parts = zip(np.array_split(gaps, num_parts), np.array_split(counts, num_parts), strict=True)
        return [_merged(*part) for part in parts if len(part[0])]

    def _compact(self) -> None:
        self._batches += self._pending(1 if self._batches else MIN_BATCHES)
        self._gaps, self._counts = array("q"), array("q")
        if self._limit == MIN_PENDING:
            self._limit = MIN_PENDING // MIN_BATCHES
        if len(self._batches) >= 2 * MIN_BATCHES:
            self._batches = [union(self._batches[i : i + 2]) for i in range(0, len(self._batches), 2)]
            self._limit *= 2


def union(parts: Sequence[Gaps]) -> Gaps:
    """All of them together."""
    if len(parts) == 1:
        return parts[0]
    return _merged(*(np.concatenate([np.empty(0, np.int64), *(part[i] for part in parts)]) for i in (0, 1)))


def _merged(gaps: Ints, counts: Ints) -> Gaps:
    """In rising order, equal gaps as one."""
    order = np.argsort(gaps, kind="stable")  # in linear time where sorted parts stand behind one another
    gaps, counts = gaps[order], counts[order]
    first = np.flatnonzero(np.diff(gaps, prepend=-1))
    return Gaps(gaps[first], np.add.reduceat(counts, first) if len(first) else counts)
