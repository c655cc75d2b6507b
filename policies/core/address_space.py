"""KV memory that is given away in one piece: an address space with holes, the lowest that is large enough first.

blocks   1 ........ 5 6 7 ........ 20 21 22 23 24 ....... 99
         [ range a  ]     [ range b ]              [ range c ]
holes                6..7              21..24                       in order of address, no two of them adjacent
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable


class AddressSpace:
    """Blocks `first` to `end - 1`. First fit takes the front of a hole; what comes back joins its neighbours."""

    num_evicted = 0
    """Nothing is cached, so nothing is evicted."""
    num_evictable = 0

    def __init__(self, first: int, end: int) -> None:
        assert first < end, (first, end)
        self.first = first
        self.end = end
        self.num_free = end - first
        """Blocks in all holes together."""
        self._starts = [first]
        self._ends = [end]
        self._largest: int | None = end - first  # None: not known since a piece of it was taken

    @property
    def largest(self) -> int:
        """Blocks of the largest hole, 0 if there is none."""
        if self._largest is None:
            holes = zip(self._starts, self._ends, strict=True)
            self._largest = max((end - start for start, end in holes), default=0)
        return self._largest

    @property
    def num_holes(self) -> int:
        """Pieces that the free blocks lie in."""
        return len(self._starts)

    def take(self, num_blocks: int) -> range:
        """The front of the lowest hole that holds so many. The caller has made sure that `largest` does."""
        starts, ends = self._starts, self._ends
        at = next(i for i, start in enumerate(starts) if ends[i] - start >= num_blocks)
        start = starts[at]
        if ends[at] - start == self._largest:
            self._largest = None
        if ends[at] - start == num_blocks:
            del starts[at], ends[at]
        else:
            starts[at] = start + num_blocks
        self.num_free -= num_blocks
        return range(start, start + num_blocks)

    def release(self, taken: range) -> None:
        """Take a range back that `take` gave; it becomes one hole with those that it touches."""
        starts, ends = self._starts, self._ends
        at = bisect_left(starts, taken.start)
        start, end = taken.start, taken.stop
        assert at == 0 or ends[at - 1] <= start, taken
        assert at == len(starts) or end <= starts[at], taken
        low, high = at, at
        if at > 0 and ends[at - 1] == start:
            low, start = at - 1, starts[at - 1]
        if at < len(starts) and starts[at] == end:
            high, end = at + 1, ends[at]
        starts[low:high], ends[low:high] = [start], [end]
        self.num_free += len(taken)
        if self._largest is not None:
            self._largest = max(self._largest, end - start)

    def check_integrity(self, held: Iterable[range]) -> None:
        """Assert that the holes and the ranges held cover every block once, and that no two holes touch."""
        holes = [range(start, end) for start, end in zip(self._starts, self._ends, strict=True)]
        at = self.first
        for piece in sorted([*holes, *held], key=lambda piece: piece.start):
            assert piece.start == at < piece.stop, (at, piece)
            at = piece.stop
        assert at == self.end, (at, self.end)
        assert all(a < b for a, b in zip(self._ends, self._starts[1:], strict=False)), holes
        assert self.num_free == sum(map(len, holes)), (self.num_free, holes)
        assert self.largest == max(map(len, holes), default=0), (self.largest, holes)
