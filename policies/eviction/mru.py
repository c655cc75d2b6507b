"""Evict what was used last."""

from __future__ import annotations

from ..core.cache_entry import CacheEntry
from ..registry import register


@register("eviction", "mru")
class Mru:
    """What was used last goes first: for contents that come round in a circle larger than the cache (SGLang)."""

    def rank(self, entry: CacheEntry) -> float:
        """Its last use, the latest first."""
        return -entry.last_used
