"""Host memory for the KV of preempted sequences: how much is there, and what was copied in the step being composed.

Whole blocks are copied, as many as the computed tokens fill, the last one begun. A sequence's are given back all at
once, when it is admitted again or ends.
"""

from __future__ import annotations

from collections.abc import Iterable

from .plan import Swap
from .records import EventKind
from .sequence import Sequence


class HostMemory:
    """Counts blocks on the host; which ones they are is an executor's to know."""

    def __init__(self, num_blocks: int, block_size: int) -> None:
        self.num_blocks = num_blocks
        self.num_used = 0
        self.swaps: list[Swap] = []
        """Since the list was last emptied; the core empties it once a step."""
        self._block_size = block_size

    def keep(self, victim: Sequence, by: Sequence | None, reason: str) -> None:
        """Copy out what a preempted sequence has computed. It is noted where the host is too full for it."""
        num_blocks = -(-victim.computed // self._block_size)
        if num_blocks > self.num_blocks - self.num_used:
            self.swaps.append(Swap(EventKind.SWAP_FULL, victim, by, num_blocks, reason))
            return
        self.num_used += num_blocks
        victim.num_swapped = victim.computed
        self.swaps.append(Swap(EventKind.SWAP_OUT, victim, by, num_blocks, reason))

    def bring_back(self, sequence: Sequence, num_cached_blocks: int) -> None:
        """Copy back what lies behind the blocks that the prefix index still holds, and free all of it on the host."""
        num_blocks = self._give_up(sequence)
        self.swaps.append(Swap(EventKind.SWAP_IN, sequence, None, max(0, num_blocks - num_cached_blocks), "admit"))

    def drop(self, sequence: Sequence) -> None:
        """Free what is kept of a sequence that ended while it waited."""
        num_blocks = self._give_up(sequence)
        self.swaps.append(Swap(EventKind.SWAP_DROP, sequence, None, num_blocks, "end"))

    def _give_up(self, sequence: Sequence) -> int:
        num_blocks = self._num_held(sequence)
        self.num_used -= num_blocks
        sequence.num_swapped = 0
        return num_blocks

    def _num_held(self, sequence: Sequence) -> int:
        return -(-sequence.num_swapped // self._block_size)

    def check_integrity(self, waiting: Iterable[Sequence], running: Iterable[Sequence]) -> None:
        """Assert that what waits holds all that is used, and that nothing which runs is on the host."""
        held = sum(map(self._num_held, waiting))
        assert held == self.num_used <= self.num_blocks, (held, self.num_used, self.num_blocks)
        assert not any(sequence.num_swapped for sequence in running), "what runs is on the host"
