"""The leaves of a radix tree that may be evicted, in the order of their policy's ranks, without sorting them anew."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from ..protocols import EvictionPolicy
from .radix_node import RadixNode

Rank = tuple[float, ...] | float
_Entry = tuple[Rank, int, int, RadixNode]

_LEAST_TO_COMPACT = 64


class EvictableLeaves:
    """A heap that yields what a fresh heap of all unlocked leaves would.

    Nothing is taken out of its middle. A leaf that may have a new rank is *noted* and gets a new entry before the next
    eviction, which makes the old one stale; so does a lock, or a child. Stale entries are skipped when they come up,
    and swept out when the heap has doubled.
    """

    def __init__(self, policy: EvictionPolicy) -> None:
        self._policy = policy
        self._heap: list[_Entry] = []
        self._noted: list[RadixNode] = []
        self._num_entered = 0
        self._compact_at = _LEAST_TO_COMPACT

    def __len__(self) -> int:
        """Entries of the heap, stale ones included."""
        return len(self._heap)

    def note(self, node: RadixNode) -> None:
        """`node` has become an unlocked leaf, or is one that has changed."""
        if not node.is_noted:
            node.is_noted = True
            self._noted.append(node)

    def pop(self) -> RadixNode | None:
        """Take the unlocked leaf that goes first; None if there is none."""
        if self._noted:
            self._enter_noted()
        heap = self._heap
        while heap:
            _, _, place, node = heappop(heap)
            if place == node.place and node.is_evictable_leaf:
                return node
        return None

    def _enter_noted(self) -> None:
        heap, rank = self._heap, self._policy.rank
        for node in self._noted:
            node.is_noted = False
            if node.is_evictable_leaf:
                self._num_entered += 1
                node.place = self._num_entered
                heappush(heap, (rank(node), node.last_used, node.place, node))
        self._noted.clear()
        if len(heap) > self._compact_at:
            self._compact()

    def _compact(self) -> None:
        self._heap = [entry for entry in self._heap if entry[2] == entry[3].place and entry[3].is_evictable_leaf]
        heapify(self._heap)
        self._compact_at = max(2 * len(self._heap), _LEAST_TO_COMPACT)

    def check_integrity(self, leaves: list[RadixNode]) -> None:
        """Assert that each of `leaves`, all that are unlocked, is noted or has an entry with its present rank."""
        entries = {place: (rank, used, node) for rank, used, place, node in self._heap}
        for node in leaves:
            if not node.is_noted:
                assert entries[node.place] == (self._policy.rank(node), node.last_used, node), (node.place, node.owner)
        assert sum(node.is_noted for node in self._noted) == len(self._noted)
