"""The longest output first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.sequence import Sequence
from ..core.waiting_queue import WaitingQueue
from ..protocols import EngineView
from ..registry import register


def shortness(sequence: Sequence) -> int:
    """Smaller is longer: by `max_tokens`, since nobody knows what a request will really generate."""
    return -sequence.request.max_tokens


def urgency_and_shortness(sequence: Sequence) -> tuple[int, int]:
    """Smaller is more urgent, or as urgent and longer."""
    return sequence.request.priority, shortness(sequence)


@register("scheduling", "lof")
class Lof:
    """Greatest `max_tokens` first, equal ones as they entered the queue; `urgent_first`: by urgency before (SGLang)."""

    def __init__(self, urgent_first: bool = False) -> None:
        self._key: Callable[[Sequence], Any] = urgency_and_shortness if urgent_first else shortness

    def insert(self, queue: WaitingQueue, sequence: Sequence) -> None:
        """In order."""
        queue.insert_by(sequence, self._key)

    def reorder(self, queue: WaitingQueue, view: EngineView) -> None:
        """Nothing to do: the queue is kept in order."""
