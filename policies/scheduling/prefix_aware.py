"""What the cache holds goes first, but nobody is overtaken for long."""

from __future__ import annotations

from itertools import islice
from math import sqrt

from ..core.sequence import Sequence
from ..core.waiting_queue import WaitingQueue
from ..protocols import EngineView
from ..registry import register

NS_PER_S = 1_000_000_000


@register("scheduling", "prefix_aware")
class PrefixAware:
    """Cache locality with a bounded wait: in order of arrival + window x sqrt(uncached share of the tokens).

    Nobody is overtaken by who arrives more than `window_s` later, whatever the cache holds. The window is shorter where
    waits are short: `patience` x the longest wait. All age alike; the root favours what is cached nearly whole. The
    first `most` of the queue are looked at, the others stay behind them.
    """

    requires = ("prefix_index",)

    def __init__(self, window_s: float = 30.0, patience: float = 1.2, most: int = 128) -> None:
        for name, value, least in (("window_s", window_s, 0), ("patience", patience, 0), ("most", most, 1)):
            if not value >= least:
                raise ValueError(f"{name}: {value} is out of range; at least {least}")
        self._window_ns = window_s * NS_PER_S
        self._patience = patience
        self._most = most

    def insert(self, queue: WaitingQueue, sequence: Sequence) -> None:
        """Last."""
        queue.append(sequence)

    def reorder(self, queue: WaitingQueue, view: EngineView) -> None:
        """By arrival and by what is left to compute, as the cache is now."""
        front = list(islice(queue, self._most))
        longest_ns = view.now_ns - min(sequence.request.arrival_ns for sequence in front)
        window_ns = min(self._window_ns, self._patience * longest_ns)

        def key(sequence: Sequence) -> float:
            uncached = 1 - view.peek_prefix(sequence) / sequence.num_tokens
            return sequence.request.arrival_ns + window_ns * sqrt(uncached)

        ahead = sorted(front, key=key)
        if ahead != front:
            queue.replace([*ahead, *islice(queue, len(front), None)])
