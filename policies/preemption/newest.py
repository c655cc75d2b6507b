"""The sequence admitted last gives way."""

from __future__ import annotations

from ..core.sequence import Sequence
from ..core.waiting_queue import WaitingQueue
from ..protocols import SchedulingPolicy
from ..registry import register
from .modes import Mode


@register("preemption", "newest")
class Newest:
    """The last of the running list, recomputed later, back at the front of the queue (vLLM with fcfs)."""

    takes_last = True

    def __init__(self, mode: Mode = "recompute") -> None:
        self.mode = mode

    def victim(self, running: list[Sequence]) -> Sequence:
        """The last."""
        return running[-1]

    def put_back(self, queue: WaitingQueue, sequence: Sequence, scheduling: SchedulingPolicy) -> None:
        """First in the queue."""
        queue.append_left(sequence)
