"""Shortest prompt first, but nobody waits for ever."""

from __future__ import annotations

from llmsim.policies.core.sequence import Sequence
from llmsim.policies.core.waiting_queue import WaitingQueue
from llmsim.policies.protocols import EngineView
from llmsim.policies.registry import register


@register("scheduling", "shortest_prompt")
class ShortestPrompt:
    """The shortest prompt first; who has waited longer than `patience_s` goes ahead of all, the oldest first."""

    def __init__(self, patience_s: float = 10.0) -> None:
        if patience_s < 0:
            raise ValueError(f"patience_s: {patience_s} is out of range; at least 0")
        self._patience_ns = round(patience_s * 1e9)

    def insert(self, queue: WaitingQueue, sequence: Sequence) -> None:
        """Last: `reorder` is called before anyone is admitted."""
        queue.append(sequence)

    def reorder(self, queue: WaitingQueue, view: EngineView) -> None:
        """Those who have lost patience in order of arrival, then the others by length."""
        late_ns = view.now_ns - self._patience_ns
        late = [s for s in queue if s.request.arrival_ns < late_ns]
        others = [s for s in queue if s.request.arrival_ns >= late_ns]
        queue.replace(sorted(late, key=lambda s: s.order) + sorted(others, key=lambda s: s.prompt_tokens))
