"""Evict what would cost least to lose: what is soon recomputed, seldom used, long unused."""

from __future__ import annotations

from math import log2

from ..core.cache_entry import CacheEntry
from ..registry import register


@register("eviction", "cost_aware")
class CostAware:
    """What saves the least computation for the memory it takes goes first: uses x cost of a token, fading with time.

        value of a token = uses x (1 + position / linear_tokens) x 2 ^ -((now - last_used) / half_life)

    Frequency x cost / size as in Greedy-Dual-Size-Frequency (Cherkasova, HPL-98-69R1, 1998), with the exponential
    fading of LRFU (Lee et al., IEEE Trans. Computers 50(12), 2001) in place of its clock. All fades alike, so the order
    by value does not depend on `now`, and its logarithm serves as a rank. Uses are hits, and at least the one for which
    it was computed.

    To recompute a token costs 2 x parameters FLOP for the linear layers, whatever stands before it, and 4 x layers x
    heads x head_dim FLOP of attention for each token before it. `linear_tokens` is where both are equal: 30,600 for
    Llama-3.1-8B (2 x 8.03e9 / (4 x 32 x 32 x 128)). `half_life` is counted as the index counts.
    """

    def __init__(self, half_life: float = 1000.0, linear_tokens: float = 30_600.0) -> None:
        for name, value in (("half_life", half_life), ("linear_tokens", linear_tokens)):
            if not value > 0:
                raise ValueError(f"{name}: {value} is out of range; above 0")
        self._half_life = half_life
        self._linear_tokens = linear_tokens

    def rank(self, entry: CacheEntry) -> float:
        """The logarithm of a token's value at the entry's middle, up to what is the same for all."""
        position = entry.depth_tokens + entry.num_tokens / 2
        value = max(entry.hits, 1) * (1 + position / self._linear_tokens)
        return log2(value) + entry.last_used / self._half_life
