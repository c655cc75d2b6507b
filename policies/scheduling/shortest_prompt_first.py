"""The shortest prompt first."""

from __future__ import annotations

from ..core.sequence import Sequence
from ..core.waiting_queue import WaitingQueue
from ..protocols import EngineView
from ..registry import register


def shortness(sequence: Sequence) -> tuple[int, int, int]:
    """Smaller is sooner: prompt tokens, then arrival, then the order in which the engine saw them."""
    request = sequence.request
    return request.prompt.num_tokens, request.arrival_ns, sequence.order


@register("scheduling", "shortest_prompt_first")
class ShortestPromptFirst:
    """Shorter prompts first, equal ones in order of arrival, whatever is cached of them. Long ones may starve."""

    def insert(self, queue: WaitingQueue, sequence: Sequence) -> None:
        """In its place."""
        queue.insert_by(sequence, shortness)

    def reorder(self, queue: WaitingQueue, view: EngineView) -> None:
        """Nothing to do: the queue is kept in order."""
