"""What sequences lock on the radix tree: the path down to a node, which moves as their content enters."""

from __future__ import annotations

from .page_numbers import PageNumbers
from .radix_node import Inserted, Match
from .radix_tree import RadixTree
from .sequence import Sequence


class RadixLocks:
    """Locks and insertions of the sequences of one cache; where pages have numbers, these follow."""

    def __init__(self, tree: RadixTree, page_size: int, numbers: PageNumbers | None, *, keeps_urgent: bool) -> None:
        self._tree = tree
        self._page_size = page_size
        self._numbers = numbers
        self._priority_sign = -1 if keeps_urgent else 1  # a request's priority is smaller the more urgent it is

    def lock(self, sequence: Sequence, found: Match | None) -> None:
        """Lock a matched prefix for a sequence that holds nothing."""
        assert sequence.node is None, sequence
        if found is not None:
            sequence.node, sequence.num_locked = found
            self._tree.lock(found.node)
        if self._numbers is not None:
            self._numbers.begin(sequence, sequence.node)

    def move(self, sequence: Sequence, end: int) -> int:
        """Insert the first `end` tokens and lock these; returns of how many the tree held more than was locked."""
        before, num_locked = sequence.node, sequence.num_locked
        inserted = self.insert(sequence, end)
        self._tree.lock(inserted.node)
        if before is not None:
            self._tree.unlock(before)
        sequence.node, sequence.num_locked, sequence.num_inserted = inserted.node, end, end
        return inserted.num_matched - num_locked

    def insert(self, sequence: Sequence, end: int) -> Inserted:
        """Insert the first `end` tokens, and behind outputs the prompt once more, which makes a boundary there."""
        prompt = sequence.prompt_tokens - sequence.prompt_tokens % self._page_size
        importance = self._priority_sign * sequence.request.priority
        inserted = self._tree.insert(
            sequence.stream, end, owner=sequence.id, priority=importance, already_inserted=sequence.num_inserted
        )
        if self._numbers is not None:
            self._numbers.enter(sequence, inserted, end)
        if end > prompt:
            self._tree.insert(sequence.stream, prompt, owner=sequence.id, priority=importance + 1, counts_hits=False)
        return inserted

    def unlock(self, sequence: Sequence, end: int) -> None:
        """The sequence holds nothing any more; of its pages only those of the first `end` tokens are the tree's."""
        if self._numbers is not None:
            self._numbers.close(sequence, end)
        if sequence.node is not None:
            self._tree.unlock(sequence.node)
        sequence.node, sequence.num_locked, sequence.num_inserted = None, 0, 0
