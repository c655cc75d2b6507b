"""SGLang's eviction orders for its radix tree, by the names of `radix_eviction_policy`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ..policies.core.cache_entry import CacheEntry
from ..policies.core.radix_eviction import Rank

_PROTECTED_FROM_HITS = 2  # slru: SGLang 0.5.23's protected segment begins with the second hit


class Ranked(NamedTuple):
    """An eviction order given by a key."""

    rank: Callable[[CacheEntry], Rank]


RANKS: Mapping[str, Ranked] = {
    "fifo": Ranked(lambda entry: entry.created),
    "filo": Ranked(lambda entry: -entry.created),
    "lfu": Ranked(lambda entry: (entry.hits, entry.last_used)),
    "lru": Ranked(lambda entry: entry.last_used),
    "mru": Ranked(lambda entry: -entry.last_used),
    "priority": Ranked(lambda entry: (entry.priority, entry.last_used)),
    "slru": Ranked(lambda entry: (entry.hits >= _PROTECTED_FROM_HITS, entry.last_used)),
}
