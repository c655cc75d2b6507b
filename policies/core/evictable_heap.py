"""Idle runs in order of rank: any eviction policy on hashed blocks."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import NamedTuple

from ..protocols import EvictionPolicy
from .block_runs import Node, Run

Rank = float | tuple[float, ...]
SPARE_ITEMS = 64
"""Stale items that a heap may always hold before it is rebuilt."""


class CachedBlock(NamedTuple):
    """One block as a `CacheEntry`."""

    created: int
    last_used: int
    hits: int
    priority: int
    num_tokens: int
    depth_tokens: int


class Item(NamedTuple):
    """A run's place in the heap: that of its last block. No two are equal: one release frees a block at each depth."""

    rank: Rank
    last_used: int
    minus_end: int
    """Equal ranks of one release: the deeper goes first."""
    run: Run


class EvictableHeap:
    """The smallest rank first, among the idle runs whose content no cached content needs: leaves, and further copies.

    An entry is one block, and a run stands in the heap with its last one: decisions are those of single blocks, however
    runs happen to be split. (But for a policy that prefers the shallower of two blocks which entered together: of a
    further copy, too, only the end of a run may go.) Lazy: an item counts only while `_items` holds it for its run.
    """

    def __init__(self, policy: EvictionPolicy, block_size: int) -> None:
        self._policy = policy
        self._block_size = block_size
        self._heap: list[Item] = []
        self._items: dict[Run, Item] = {}

    def freed(self, run: Run) -> None:
        """It may go if nothing builds on it."""
        if _may_go(run):
            self._push(run)

    def reused(self, run: Run) -> None:
        """It may not go."""
        self._items.pop(run, None)

    def split(self, run: Run, front: Run) -> None:
        """The rest keeps its last block, and so its place. The front may go where it is a further copy."""
        self.freed(front)

    def exposed(self, node: Node) -> None:
        """Its idle runs may go."""
        for run in node.runs:
            if not run.num_users and run not in self._items:
                self.freed(run)

    def choose(self, num_blocks: int) -> tuple[Run, int]:
        """The smallest; as many of its blocks as come before the next in the heap."""
        heap, items = self._heap, self._items
        while True:
            item = heap[0]
            run = item.run
            if items.get(run) is item:
                if _may_go(run):
                    return run, self._num_smallest(item, min(num_blocks, len(run.ids)))
                del items[run]
            heappop(heap)

    def _num_smallest(self, item: Item, limit: int) -> int:
        """Blocks from the run's end, at most `limit`, that are smaller than all others in the heap.

        A rank that is the same at both ends is taken to be so in between.
        """
        run = item.run
        if limit == 1 or self._item(run, len(run.ids) - limit + 1).rank == item.rank:
            return limit
        others = self._heap[1:3]
        count = 1
        while count < limit and all(self._item(run, len(run.ids) - count) < other for other in others):
            count += 1
        return count

    def shrunk(self, run: Run) -> None:
        """It stands in the heap with another block."""
        self._push(run)

    def evicted(self, run: Run) -> None:
        """Forget it."""
        self._items.pop(run, None)

    def _push(self, run: Run) -> None:
        item = self._items[run] = self._item(run, len(run.ids))
        heappush(self._heap, item)
        if len(self._heap) > 2 * len(self._items) + SPARE_ITEMS:
            self._heap = list(self._items.values())
            heapify(self._heap)

    def _item(self, run: Run, length: int) -> Item:
        """The place of the last of the run's first `length` blocks."""
        end, size = run.node.start + length, self._block_size
        block = CachedBlock(run.created, run.last_used, run.hits, run.priority, size, (end - 1) * size)
        return Item(self._policy.rank(block), run.last_used, -end, run)

    def check_integrity(self, idle: set[Run]) -> None:
        """Every run that may go stands in the heap with its rank; what is in use does not."""
        current = {item.run for item in self._heap if self._items.get(item.run) is item}
        assert current == self._items.keys(), (len(current), len(self._items))
        assert current <= idle, f"{len(current - idle)} runs in the heap are in use"
        for run in idle:
            if _may_go(run):
                assert self._items.get(run) == self._item(run, len(run.ids)), (run.owner, run.node.start)


def _may_go(run: Run) -> bool:
    """Whether no cached content needs the idle run: nothing builds on it, or there is a further copy."""
    return not run.node.children or len(run.node.runs) > 1
