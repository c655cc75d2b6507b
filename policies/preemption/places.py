"""Where who gave way waits then."""

from __future__ import annotations

from typing import Literal

from ..core.sequence import Sequence
from ..core.waiting_queue import WaitingQueue
from ..protocols import SchedulingPolicy

Place = Literal["front", "tail"]
"""`front`: before all others. `tail`: as if it came now, behind all under fcfs, in its place under an order."""


def place(to: Place, queue: WaitingQueue, sequence: Sequence, scheduling: SchedulingPolicy) -> None:
    """Queue a preempted sequence there."""
    if to == "front":
        queue.append_left(sequence)
    else:
        scheduling.insert(queue, sequence)
