"""Evict what was used longest ago."""

from __future__ import annotations

from ..core.cache_entry import CacheEntry
from ..registry import register


@register("eviction", "lru")
class Lru:
    """What was used longest ago goes first (vLLM and SGLang by default)."""

    by_release = True

    def rank(self, entry: CacheEntry) -> float:
        """Its last use."""
        return entry.last_used
