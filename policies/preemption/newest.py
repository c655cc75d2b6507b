"""The sequence admitted last gives way."""

from __future__ import annotations

from ..core.sequence import Sequence
from ..core.waiting_queue import WaitingQueue
from ..protocols import SchedulingPolicy
from ..registry import register
from .modes import Mode
from .places import Place, place


@register("preemption", "newest")
class Newest:
    """The last of the running list; back at the front of the queue, as in vLLM with fcfs, or its tail."""

    takes_last = True

    def __init__(self, to: Place = "front", mode: Mode = "recompute") -> None:
        self._to = to
        self.mode = mode

    def victim(self, running: list[Sequence]) -> Sequence:
        """The last."""
        return running[-1]

    def put_back(self, queue: WaitingQueue, sequence: Sequence, scheduling: SchedulingPolicy) -> None:
        """At the front or as an arrival."""
        place(self._to, queue, sequence, scheduling)
