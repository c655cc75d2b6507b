"""The most urgent first."""

from __future__ import annotations

from ..core.sequence import Sequence
from ..core.waiting_queue import WaitingQueue
from ..protocols import EngineView
from ..registry import register


def urgency(sequence: Sequence) -> tuple[int, int, int]:
    """Smaller is more urgent: priority, then arrival, then the order in which the engine saw them."""
    request = sequence.request
    return request.priority, request.arrival_ns, sequence.order


@register("scheduling", "priority")
class Priority:
    """Smaller `priority` first; equal ones in order of arrival, preempted ones included."""

    def insert(self, queue: WaitingQueue, sequence: Sequence) -> None:
        """In order of urgency."""
        queue.insert_by(sequence, urgency)

    def reorder(self, queue: WaitingQueue, view: EngineView) -> None:
        """Nothing to do: the queue is kept in order."""
