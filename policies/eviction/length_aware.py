"""Evict what few requests share: what stands late in its prompt and is seldom asked for."""

from __future__ import annotations

from ..core.cache_entry import CacheEntry
from ..registry import register


@register("eviction", "length_aware")
class LengthAware:
    """What was asked for least often goes first; of equal ones what stands latest in its prompt.

    Mooncake's LengthAwareCache (Qin et al., arXiv 2407.00079, section 4.2): LFU that prefers blocks late in requests.
    """

    def rank(self, entry: CacheEntry) -> tuple[float, ...]:
        """Hits, then the depth, the deepest first."""
        return entry.hits, -entry.depth_tokens
