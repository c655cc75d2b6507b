"""Evict what was asked for least."""

from __future__ import annotations

from ..core.cache_entry import CacheEntry
from ..registry import register


@register("eviction", "lfu")
class Lfu:
    """What was asked for least often goes first; of equal ones what was used longest ago (SGLang)."""

    def rank(self, entry: CacheEntry) -> tuple[float, ...]:
        """Hits, then the last use."""
        return entry.hits, entry.last_used
