"""The least to compute first."""

from __future__ import annotations

from ..core.sequence import Sequence
from ..core.waiting_queue import WaitingQueue
from ..protocols import EngineView
from ..registry import register


@register("scheduling", "shortest_prefill_first")
class ShortestPrefillFirst:
    """Fewest tokens that no cache holds first, of equal ones the earlier in the queue (SGLang, by its description)."""

    requires = ("prefix_index",)

    def insert(self, queue: WaitingQueue, sequence: Sequence) -> None:
        """Last."""
        queue.append(sequence)

    def reorder(self, queue: WaitingQueue, view: EngineView) -> None:
        """By what is left to compute, as the cache is now."""
        cached = {sequence: view.match_prefix(sequence) for sequence in queue}
        queue.replace(sorted(queue, key=lambda sequence: sequence.num_tokens - cached[sequence]))
