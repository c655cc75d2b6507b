"""The sequence that has generated the least gives way."""

from __future__ import annotations

from ..core.sequence import Sequence
from ..core.waiting_queue import WaitingQueue
from ..protocols import SchedulingPolicy
from ..registry import register
from .modes import Mode
from .places import Place, place


def progress(sequence: Sequence) -> tuple[int, int]:
    """Smaller gives way first: outputs so far, then the shorter prompt stays."""
    return sequence.num_tokens - sequence.prompt_tokens, -sequence.prompt_tokens


@register("preemption", "fewest_outputs")
class FewestOutputs:
    """Fewest outputs, of equal ones the longest prompt; back at the tail of the queue (SGLang)."""

    def __init__(self, to: Place = "tail", mode: Mode = "recompute") -> None:
        self._to = to
        self.mode = mode

    def order(self, running: list[Sequence]) -> list[Sequence]:
        """Most outputs first; SGLang's running list keeps this order after a retraction."""
        return sorted(running, key=progress, reverse=True)

    def victim(self, running: list[Sequence]) -> Sequence:
        """The least advanced; of equal ones the last."""
        return min(reversed(running), key=progress)

    def put_back(self, queue: WaitingQueue, sequence: Sequence, scheduling: SchedulingPolicy) -> None:
        """At the front, or as an arrival: last, or where the order of the queue wants it."""
        place(self._to, queue, sequence, scheduling)
