"""The pooled gaps between output chunks: a weighted sample, since a token has no object."""

from __future__ import annotations

from array import array
from typing import NamedTuple

import numpy as np

from .columns import Ints

MIN_PENDING = 1 << 17


class Gaps(NamedTuple):
    """Distinct gaps in rising order, and how many tokens waited each."""

    gap_ns: Ints
    num_tokens: Ints


class GapPool:
    """Collects `(gap, count)` pairs; equal gaps are merged, so memory grows with the distinct ones only.

    Pairs are merged when a quarter as many are pending as are already merged, so that a pair costs little however
    many there are.
    """

    def __init__(self) -> None:
        self._merged = Gaps(np.empty(0, np.int64), np.empty(0, np.int64))
        self._gaps = array("q")
        self._counts = array("q")
        self._limit = MIN_PENDING

    def add(self, gap_ns: int, count: int) -> None:
        """`count` tokens came `gap_ns` after the chunk before them."""
        self._gaps.append(gap_ns)
        self._counts.append(count)
        if len(self._gaps) >= self._limit:
            self._merge()

    def merged(self) -> Gaps:
        """All gaps so far."""
        if self._gaps:
            self._merge()
        return self._merged

    def _merge(self) -> None:
        gaps, counts = np.frombuffer(self._gaps, np.int64), np.frombuffer(self._counts, np.int64)
        self._gaps, self._counts = array("q"), array("q")
        order = np.argsort(gaps)
        gaps, counts = gaps[order], counts[order]
        first = np.flatnonzero(np.diff(gaps, prepend=gaps[0] - 1))
        self._merged = _union(self._merged, Gaps(gaps[first], np.add.reduceat(counts, first)))
        self._limit = max(MIN_PENDING, len(self._merged.gap_ns) // 4)


def _union(large: Gaps, small: Gaps) -> Gaps:
    """Both together; each is sorted and holds a gap once. Without sorting the large one again."""
    at = np.searchsorted(large.gap_ns, small.gap_ns)
    known = at < len(large.gap_ns)
    known[known] = large.gap_ns[at[known]] == small.gap_ns[known]
    counts = large.num_tokens.copy()
    counts[at[known]] += small.num_tokens[known]
    new = ~known
    return Gaps(np.insert(large.gap_ns, at[new], small.gap_ns[new]), np.insert(counts, at[new], small.num_tokens[new]))
