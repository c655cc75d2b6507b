"""The paged KV memory: ids of free blocks, handed out and taken back in runs."""

from __future__ import annotations

from collections.abc import Iterable

from .hash_blocks import Evicted, HashBlocks


class BlockPool:
    """Blocks 1 .. num_blocks - 1; block 0 is the null block that is never handed out.

    Free are the blocks without content (handed out first, the last one freed first) and those that the prefix index
    still holds content for but nobody uses (evicted only when the former run out).
    """

    def __init__(self, num_blocks: int, index: HashBlocks) -> None:
        assert num_blocks >= 2, num_blocks
        self.num_blocks = num_blocks
        self._index = index
        self._returned: list[int] = []
        self._untouched = 1  # this block and all behind it were never handed out
        self.num_evicted = 0
        """Cached blocks evicted so far."""

    @property
    def num_free(self) -> int:
        """Blocks that can be handed out."""
        return len(self._returned) + self.num_blocks - self._untouched + self._index.num_evictable

    def take(self, num_blocks: int) -> tuple[list[int], list[Evicted]]:
        """Hand out `num_blocks` blocks, evicting cached content when blank blocks run out.

        The caller has made sure that so many are free. Returns the ids and what was evicted for them.
        """
        returned = self._returned
        cut = len(returned) - num_blocks
        if cut >= 0:
            ids = returned[cut:]
            del returned[cut:]
            return ids, []
        ids = returned[::-1]
        returned.clear()
        fresh = min(num_blocks - len(ids), self.num_blocks - self._untouched)
        ids += range(self._untouched, self._untouched + fresh)
        self._untouched += fresh
        short = num_blocks - len(ids)
        if not short:
            return ids, []
        evicted = self._index.evict(short)
        self.num_evicted += short
        for eviction in evicted:
            ids += eviction.ids
        return ids, evicted

    def release(self, ids: list[int]) -> None:
        """Take back blocks without content."""
        self._returned += ids

    def check_integrity(self, held: Iterable[int]) -> None:
        """Assert that every block that was handed out is in exactly one place: returned, in the index, or in `held`."""
        indexed = [block for run in self._index.runs() for block in run.ids]
        places = sorted([*self._returned, *indexed, *held])
        assert places == list(range(1, self._untouched)), f"{len(places)} blocks for {self._untouched - 1}"
