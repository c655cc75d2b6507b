"""Who has generated least gives way."""

from __future__ import annotations

from ..core.sequence import Sequence
from ..core.waiting_queue import WaitingQueue
from ..protocols import SchedulingPolicy
from ..registry import register
from .places import Place, place


@register("preemption", "fewest_outputs")
class FewestOutputs:
    """The fewest outputs, of equal ones the longest prompt, then the newest; to the tail of the queue (SGLang's)."""

    def __init__(self, to: Place = "tail") -> None:
        self._to = to

    def victim(self, running: list[Sequence]) -> Sequence:
        """By delivered outputs."""
        return min(running, key=lambda s: (s.num_tokens - s.prompt_tokens, -s.prompt_tokens, -s.admission))

    def put_back(self, queue: WaitingQueue, sequence: Sequence, scheduling: SchedulingPolicy) -> None:
        """At the front or as an arrival."""
        place(self._to, queue, sequence, scheduling)
