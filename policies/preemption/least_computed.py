"""Who has least to lose gives way."""

from __future__ import annotations

from ..core.sequence import Sequence
from ..core.waiting_queue import WaitingQueue
from ..protocols import SchedulingPolicy
from ..registry import register
from .modes import Mode
from .places import Place, place


@register("preemption", "least_computed")
class LeastComputed:
    """The fewest computed tokens, the least to recompute or copy (vllm#54644); of equal ones the newest."""

    def __init__(self, to: Place = "front", mode: Mode = "recompute") -> None:
        self._to = to
        self.mode = mode

    def victim(self, running: list[Sequence]) -> Sequence:
        """By tokens whose KV would be lost."""
        return min(running, key=lambda s: (s.computed, -s.admission))

    def put_back(self, queue: WaitingQueue, sequence: Sequence, scheduling: SchedulingPolicy) -> None:
        """At the front or as an arrival."""
        place(self._to, queue, sequence, scheduling)
