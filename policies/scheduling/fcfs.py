"""First come, first served."""

from __future__ import annotations

from ..core.sequence import Sequence
from ..core.waiting_queue import WaitingQueue
from ..protocols import EngineView
from ..registry import register


@register("scheduling", "fcfs")
class Fcfs:
    """Arrivals wait in order of arrival; what is preempted goes where the preemption policy puts it."""

    def insert(self, queue: WaitingQueue, sequence: Sequence) -> None:
        """Last."""
        queue.append(sequence)

    def reorder(self, queue: WaitingQueue, view: EngineView) -> None:
        """Nothing to do: the order of arrival stays."""
