"""The waiting queue: persistent and ordered; policies insert and re-order, the batching policy takes from the front."""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .sequence import Sequence


class WaitingQueue:
    """Waiting and preempted sequences in the order in which they will be admitted.

    Those that were put first stand in front of an order that `insert_by` keeps, and are no part of it.
    """

    __slots__ = ("_items", "_num_in_front")

    def __init__(self) -> None:
        self._items: deque[Sequence] = deque()
        self._num_in_front = 0

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Sequence]:
        return iter(self._items)

    def first(self) -> Sequence | None:
        """Who is next, or None."""
        return self._items[0] if self._items else None

    def append(self, sequence: Sequence) -> None:
        """Put it last."""
        self._items.append(sequence)

    def append_left(self, sequence: Sequence) -> None:
        """Put it first."""
        self._items.appendleft(sequence)
        self._num_in_front += 1

    def insert_by(self, sequence: Sequence, key: Callable[[Sequence], Any]) -> None:
        """Put it behind all whose key is not greater; but for those put first, the queue must be in order of `key`."""
        insort(self._items, sequence, lo=self._num_in_front, key=key)

    def pop_first(self) -> Sequence:
        """Take out who is next."""
        if self._num_in_front:
            self._num_in_front -= 1
        return self._items.popleft()

    def remove(self, sequence: Sequence) -> None:
        """Take `sequence` out, wherever it stands."""
        if self._num_in_front and self._items.index(sequence) < self._num_in_front:
            self._num_in_front -= 1
        self._items.remove(sequence)

    def replace(self, sequences: Iterable[Sequence]) -> None:
        """Re-order: `sequences` are those of the queue, each once."""
        items = deque(sequences)
        assert len(items) == len(self._items), (len(items), len(self._items))
        self._items = items
        self._num_in_front = 0
