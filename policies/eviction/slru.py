"""Evict what has not proved itself before what has."""

from __future__ import annotations

from ..core.cache_entry import CacheEntry
from ..registry import register


@register("eviction", "slru")
class Slru:
    """Segmented LRU: what was asked for `threshold` times is protected, and goes after all that was not (SGLang)."""

    def __init__(self, threshold: int = 2) -> None:
        if threshold < 1:
            raise ValueError(f"threshold: {threshold} is out of range; at least 1")
        self._threshold = threshold

    def rank(self, entry: CacheEntry) -> tuple[float, ...]:
        """Whether it is protected, then the last use."""
        return entry.hits >= self._threshold, entry.last_used
