"""The longest cached prefix first."""

from __future__ import annotations

from ..core.sequence import Sequence
from ..core.waiting_queue import WaitingQueue
from ..protocols import EngineView
from ..registry import register
from .in_batch import late

MOST_MATCHED = 128
"""With more waiting the order stays as it is: matching all would cost too much (SGLang)."""


@register("scheduling", "lpm")
class Lpm:
    """Longest cached prefix first, equal ones as they stand; all as they stand while more than `most` wait (SGLang)."""

    requires = ("prefix_index",)

    def __init__(self, most: int = MOST_MATCHED) -> None:
        if most < 1:
            raise ValueError(f"most: {most} is out of range; at least 1")
        self.most = most

    def insert(self, queue: WaitingQueue, sequence: Sequence) -> None:
        """Last."""
        queue.append(sequence)

    def reorder(self, queue: WaitingQueue, view: EngineView) -> None:
        """By what the cache holds of each; those that share with one in front of them last."""
        if len(queue) > self.most:
            return
        cached = {sequence: view.match_prefix(sequence) for sequence in queue}
        last = late(cached.items())

        def key(sequence: Sequence) -> float:
            return 1.0 if sequence in last else -min(cached[sequence], sequence.num_tokens - 1)

        queue.replace(sorted(queue, key=key))
