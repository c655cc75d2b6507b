"""Evict by lot."""

from __future__ import annotations

from math import log

from ..core.cache_entry import CacheEntry
from ..registry import register

MASK = (1 << 64) - 1
GOLDEN_GAMMA = 0x9E3779B97F4A7C15


@register("eviction", "random")
class Random:
    """Content may stay for a random time from its entry on, `lifetime` on average, however often it is hit.

    Exponential times have no memory: among contents whose time is not up, each is the next to go with equal
    probability. A lot belongs to what entered together and to `seed`, not to the order in which ranks are asked for.
    `lifetime` is counted as the index counts. Far beyond the time for which content can stay, what drew a long life
    stays for ever and fills the cache; far below, this is `fifo`.
    """

    def __init__(self, lifetime: float = 1000.0, seed: int = 0) -> None:
        if not lifetime > 0:
            raise ValueError(f"lifetime: {lifetime} is out of range; above 0")
        self._lifetime = lifetime
        self._start = _mix(seed)

    def rank(self, entry: CacheEntry) -> float:
        """When its time is up."""
        lot = (_mix(self._start + entry.created * GOLDEN_GAMMA) + 1) / (MASK + 2)
        return entry.created - self._lifetime * log(lot)


def _mix(number: int) -> int:
    """SplitMix64's finaliser (Steele, Lea and Flood, OOPSLA 2014): 64 bits, each depending on all of `number`."""
    number &= MASK
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 & MASK
    number = (number ^ number >> 27) * 0x94D049BB133111EB & MASK
    return number ^ number >> 31
