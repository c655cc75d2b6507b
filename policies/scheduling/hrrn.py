"""The highest response ratio next: waiting counts for more the less a request asks for."""

from __future__ import annotations

from math import inf

from ..core.sequence import Sequence
from ..core.waiting_queue import WaitingQueue
from ..protocols import EngineView
from ..registry import register
from .in_batch import late
from .lpm import MOST_MATCHED


@register("scheduling", "hrrn")
class Hrrn:
    """Greatest (tokens prefilled while it waited) / (tokens not cached) first; as it is while more than `most` wait."""

    requires = ("prefix_index",)

    def __init__(self, most: int = MOST_MATCHED) -> None:
        if most < 1:
            raise ValueError(f"most: {most} is out of range; at least 1")
        self.most = most

    def insert(self, queue: WaitingQueue, sequence: Sequence) -> None:
        """Last."""
        queue.append(sequence)

    def reorder(self, queue: WaitingQueue, view: EngineView) -> None:
        """By response ratio, ties by request id; those that share with one in front of them last."""
        if len(queue) > self.most:
            return
        cached = {sequence: view.match_prefix(sequence) for sequence in queue}
        last = late(cached.items())

        def key(sequence: Sequence) -> tuple[float, str]:
            uncached = sequence.prompt_tokens - min(cached[sequence], sequence.num_tokens - 1)
            if sequence in last:
                return inf, sequence.id
            if uncached <= 0:
                return -inf, sequence.id
            return -(view.num_prefilled - sequence.prefill_mark) / uncached, sequence.id

        queue.replace(sorted(queue, key=key))
