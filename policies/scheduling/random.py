"""In random order."""

from __future__ import annotations

from hashlib import blake2b

from ..core.sequence import Sequence
from ..core.waiting_queue import WaitingQueue
from ..protocols import EngineView
from ..registry import register


@register("scheduling", "random")
class RandomOrder:
    """In an order that is drawn: the draw belongs to `seed` and the request, whatever else waits."""

    def __init__(self, seed: int = 0) -> None:
        self._prefix = f"{seed}/".encode()

    def insert(self, queue: WaitingQueue, sequence: Sequence) -> None:
        """In its place."""
        queue.insert_by(sequence, self._draw)

    def reorder(self, queue: WaitingQueue, view: EngineView) -> None:
        """Nothing to do: the queue is kept in order."""

    def _draw(self, sequence: Sequence) -> bytes:
        return blake2b(self._prefix + sequence.id.encode(), digest_size=8).digest()
