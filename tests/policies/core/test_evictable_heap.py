"""The heap of idle runs: what may go, how much at once, and how large it grows."""

from __future__ import annotations

from llmsim.policies.core.block_pool import BlockPool
from llmsim.policies.core.block_runs import Lease
from llmsim.policies.core.cache_entry import CacheEntry
from llmsim.policies.core.evictable_heap import EvictableHeap
from llmsim.policies.core.hash_blocks import Evicted, HashBlocks
from llmsim.policies.core.request import Prompt
from llmsim.policies.core.token_stream import TokenStream
from llmsim.policies.eviction.lfu import Lfu
from llmsim.policies.protocols import EvictionPolicy

SIZE = 4


class Counting:
    """LFU that counts how often it is asked."""

    def __init__(self) -> None:
        self.num_asked = 0

    def rank(self, entry: CacheEntry) -> tuple[float, ...]:
        self.num_asked += 1
        return entry.hits, entry.last_used


class Cache:
    """An index and its pool; each stream of tokens is content of its own."""

    def __init__(self, num_blocks: int, policy: EvictionPolicy) -> None:
        self.index = HashBlocks(SIZE, policy)
        self.pool = BlockPool(num_blocks + 1, self.index)

    def use(self, content: int, num_blocks: int, own: int = 0) -> list[Lease]:
        """Look up `num_blocks` blocks of content and compute what is missing, and `own` blocks of nobody else's."""
        spans = [(content, 0, num_blocks * SIZE), (100 + content, 0, own * SIZE)]
        stream, owner = TokenStream(Prompt(spans), -1), f"r{content}"
        match = self.index.match(stream, num_blocks + own)
        leases = self.index.acquire(match)
        missing = num_blocks + own - match.num_blocks
        if missing:
            self.index.enter(leases, stream, match.num_blocks, self.pool.take(missing)[0], owner)
        return leases

    def visit(self, content: int, num_blocks: int, own: int = 0) -> None:
        """Use it and leave."""
        self.index.release(self.use(content, num_blocks, own))
        self.index.check_integrity()

    def evict(self, num_blocks: int) -> list[tuple[str, int]]:
        """Whose blocks go, and how many."""
        evicted: list[Evicted] = self.pool.take(num_blocks)[1]
        self.index.check_integrity()
        return [(owner, len(ids)) for owner, ids in evicted]


def test_what_is_asked_for_often_stays() -> None:
    cache = Cache(9, Lfu())
    for content in (1, 1, 1, 2, 3, 3):
        cache.visit(content, 3)
    assert cache.evict(8) == [("r2", 3), ("r3", 3), ("r1", 2)]


def test_what_cached_content_builds_on_stays_however_low_its_rank() -> None:
    class Shallow:
        def rank(self, entry: CacheEntry) -> float:
            return entry.depth_tokens

    cache = Cache(6, Shallow())
    cache.visit(1, 2, own=2)
    cache.visit(2, 2)
    assert cache.evict(4) == [("r2", 2), ("r1", 2)]


def test_a_run_in_use_does_not_go() -> None:
    cache = Cache(4, Lfu())
    leases = cache.use(1, 2)
    cache.visit(2, 2)
    cache.visit(2, 2)
    assert cache.evict(2) == [("r2", 2)]
    cache.index.release(leases)
    assert cache.evict(2) == [("r1", 2)]


def test_a_split_leaves_each_part_its_hits() -> None:
    cache = Cache(12, Lfu())
    cache.visit(1, 6)
    cache.visit(1, 6)
    cache.visit(1, 2)
    cache.visit(2, 2, own=4)
    cache.visit(2, 2)
    assert cache.evict(10) == [("r2", 4), ("r1", 4), ("r2", 2)]


def test_a_run_of_one_rank_is_asked_for_twice_however_long_it_is() -> None:
    policy = Counting()
    cache = Cache(1000, policy)
    cache.visit(1, 1000)
    policy.num_asked = 0
    assert cache.pool.take(999)[1][0].owner == "r1"
    assert policy.num_asked == 2


def test_the_heap_does_not_grow_with_the_number_of_visits() -> None:
    policy = Lfu()
    cache = Cache(40, policy)
    for visit in range(2000):
        cache.index.release(cache.use(visit % 10, 4))
    order = cache.index._order
    assert isinstance(order, EvictableHeap)
    assert len(order._heap) < 150
