"""Evict what came last."""

from __future__ import annotations

from ..core.cache_entry import CacheEntry
from ..registry import register


@register("eviction", "filo")
class Filo:
    """What entered last goes first: the oldest content stays (SGLang)."""

    def rank(self, entry: CacheEntry) -> float:
        """When it entered, the latest first."""
        return -entry.created
