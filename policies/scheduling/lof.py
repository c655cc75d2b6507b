"""The longest output first."""

from __future__ import annotations

from ..core.sequence import Sequence
from ..core.waiting_queue import WaitingQueue
from ..protocols import EngineView
from ..registry import register


def longevity(sequence: Sequence) -> tuple[int, int, int]:
    """Smaller is sooner: the more tokens it may generate, then arrival, then the order in which the engine saw them."""
    request = sequence.request
    return -request.max_tokens, request.arrival_ns, sequence.order


@register("scheduling", "lof")
class Lof:
    """Greater `max_tokens` first, equal ones in order of arrival (SGLang's `lof`): the longest do not run last."""

    def insert(self, queue: WaitingQueue, sequence: Sequence) -> None:
        """In its place."""
        queue.insert_by(sequence, longevity)

    def reorder(self, queue: WaitingQueue, view: EngineView) -> None:
        """Nothing to do: the queue is kept in order."""
