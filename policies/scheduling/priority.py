"""The most urgent first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from ..core.sequence import Sequence
from ..core.waiting_queue import WaitingQueue
from ..protocols import EngineView
from ..registry import register


def urgency(sequence: Sequence) -> tuple[int, int, int]:
    """Smaller is more urgent: priority, then arrival, then the order in which the engine saw them."""
    request = sequence.request
    return request.priority, request.arrival_ns, sequence.order


def urgency_of_entry(sequence: Sequence) -> tuple[int, int]:
    """Smaller is more urgent: priority, then the order in which they entered the queue; one that returns is new."""
    return sequence.request.priority, sequence.entry


@register("scheduling", "priority")
class Priority:
    """Smaller `priority` first; equal ones in order of arrival, preempted ones included (`by: entry`: as new ones)."""

    def __init__(self, by: Literal["arrival", "entry"] = "arrival") -> None:
        self._key: Callable[[Sequence], tuple[int, ...]] = urgency if by == "arrival" else urgency_of_entry

    def insert(self, queue: WaitingQueue, sequence: Sequence) -> None:
        """In order of urgency."""
        queue.insert_by(sequence, self._key)

    def reorder(self, queue: WaitingQueue, view: EngineView) -> None:
        """Nothing to do: the queue is kept in order."""
