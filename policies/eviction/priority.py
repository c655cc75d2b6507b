"""Evict what matters least."""

from __future__ import annotations

from ..core.cache_entry import CacheEntry
from ..registry import register


@register("eviction", "priority")
class Priority:
    """What only the least urgent requests have used goes first; of equal ones what was used longest ago (SGLang)."""

    def rank(self, entry: CacheEntry) -> tuple[float, ...]:
        """Priority, then the last use."""
        return entry.priority, entry.last_used
