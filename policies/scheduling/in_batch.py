"""Prefixes that waiting requests share with each other but not with the cache: one of them should go first."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.cache_entry import CacheEntry
from ..core.radix_tree import RadixTree
from ..core.sequence import Sequence

LITTLE_CACHED = 32
"""A request with more cached tokens than that does not take part."""
MUCH_SHARED = 32
"""A request that shares at least so many tokens with one before it is late."""


class _Unranked:
    """For a tree from which nothing is ever evicted."""

    def rank(self, entry: CacheEntry) -> float:
        """Any."""
        return 0.0


def late(cached: Iterable[tuple[Sequence, int]]) -> set[Sequence]:
    """Of the sequences (in order of the queue, with their cached tokens) those that should let another go first.

    SGLang's rule: whoever has little in the cache is matched against the queue in front of it; if that finds much, the
    one in front will soon have put it into the cache.
    """
    tree, found = RadixTree(1, _Unranked()), set()
    for sequence, num_cached in cached:
        if num_cached > LITTLE_CACHED:
            continue
        if tree.match(sequence.stream, sequence.num_tokens).num_tokens >= MUCH_SHARED:
            found.add(sequence)
        else:
            tree.insert(sequence.stream, sequence.num_tokens, owner=sequence.id)
    return found
