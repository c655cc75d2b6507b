"""The longest output first."""

from __future__ import annotations

from ..core.sequence import Sequence
from ..core.waiting_queue import WaitingQueue
from ..protocols import EngineView
from ..registry import register


def shortness(sequence: Sequence) -> int:
    """Smaller is longer: by `max_tokens`, since nobody knows what a request will really generate."""
    return -sequence.request.max_tokens


@register("scheduling", "lof")
class Lof:
    """Greatest `max_tokens` first, of equal ones whoever entered the queue first (SGLang)."""

    def insert(self, queue: WaitingQueue, sequence: Sequence) -> None:
        """In order."""
        queue.insert_by(sequence, shortness)

    def reorder(self, queue: WaitingQueue, view: EngineView) -> None:
        """Nothing to do: the queue is kept in order."""
