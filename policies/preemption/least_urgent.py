"""The least urgent sequence gives way."""

from __future__ import annotations

from ..core.sequence import Sequence
from ..core.waiting_queue import WaitingQueue
from ..protocols import SchedulingPolicy
from ..registry import register
from ..scheduling.priority import urgency
from .modes import Mode


@register("preemption", "least_urgent")
class LeastUrgent:
    """The greatest priority value, of equal ones the latest arrival; back in order (vLLM with priority)."""

    def __init__(self, mode: Mode = "recompute") -> None:
        self.mode = mode

    def victim(self, running: list[Sequence]) -> Sequence:
        """The least urgent, even one that this step has served already."""
        return max(running, key=urgency)

    def put_back(self, queue: WaitingQueue, sequence: Sequence, scheduling: SchedulingPolicy) -> None:
        """Where the scheduling policy would put an arrival."""
        scheduling.insert(queue, sequence)
