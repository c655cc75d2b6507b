"""Evict what has been there longest."""

from __future__ import annotations

from ..core.cache_entry import CacheEntry
from ..registry import register


@register("eviction", "fifo")
class Fifo:
    """What entered first goes first, however often it was hit (SGLang)."""

    def rank(self, entry: CacheEntry) -> float:
        """When it entered."""
        return entry.created
