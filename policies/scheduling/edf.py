"""The earliest deadline first."""

from __future__ import annotations

from math import inf

from ..core.sequence import Sequence
from ..core.waiting_queue import WaitingQueue
from ..protocols import EngineView
from ..registry import register


def dueness(sequence: Sequence) -> tuple[float, int, int]:
    """Smaller is sooner: the deadline, then arrival, then the order in which the engine saw them."""
    request = sequence.request
    return inf if request.deadline_ns is None else request.deadline_ns, request.arrival_ns, sequence.order


@register("scheduling", "edf")
class Edf:
    """Earlier deadlines first, those without one last; a deadline that is missed already still counts.

    Where all requests have the same time this is the order of arrival: it tells apart tenants whose times differ.
    """

    requires = ("deadline",)

    def insert(self, queue: WaitingQueue, sequence: Sequence) -> None:
        """In its place."""
        queue.insert_by(sequence, dueness)

    def reorder(self, queue: WaitingQueue, view: EngineView) -> None:
        """Nothing to do: the queue is kept in order."""
