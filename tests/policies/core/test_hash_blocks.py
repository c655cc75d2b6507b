"""Which copy is used, what may go, and what stays."""

from __future__ import annotations

from llmsim.policies.core.block_pool import BlockPool
from llmsim.policies.core.block_runs import Lease
from llmsim.policies.core.hash_blocks import Evicted, HashBlocks
from llmsim.policies.core.request import Prompt
from llmsim.policies.core.token_stream import TokenStream
from llmsim.policies.eviction.lru import Lru

SIZE = 4


class Cache:
    """An index and its pool, driven block by block."""

    def __init__(self, num_blocks: int) -> None:
        self.index = HashBlocks(SIZE, Lru())
        self.pool = BlockPool(num_blocks, self.index)

    def compute(self, stream: TokenStream, num_blocks: int, owner: str) -> list[Lease]:
        """Take blocks for all of a stream's beginning, without a look at what is there, and enter them."""
        leases: list[Lease] = []
        self.index.enter(leases, stream, 0, self.pool.take(num_blocks)[0], owner)
        return leases

    def hit(self, stream: TokenStream, max_blocks: int) -> list[Lease]:
        """Use what is there of a stream."""
        return self.index.acquire(self.index.match(stream, max_blocks))


def stream(*spans: tuple[int, int, int]) -> TokenStream:
    return TokenStream(Prompt(spans), -1)


def ids(leases: list[Lease]) -> list[int]:
    return [block for lease in leases for run in reversed(list(lease.runs_from_tail())) for block in run.ids]


A = stream((1, 0, 100))


def test_a_locked_prefix_is_never_evicted() -> None:
    cache = Cache(8)
    computed = cache.compute(A, 6, "a")
    deeper = ids(computed)[3:]
    cache.index.release(computed)
    locked = cache.hit(A, 3)
    taken, evicted = cache.pool.take(4)
    assert evicted == [Evicted("a", deeper)]
    assert not set(taken) & set(ids(locked))
    assert cache.pool.num_free == 0
    assert cache.index.match(A, 6).num_blocks == 3


def test_blank_blocks_go_before_cached_ones() -> None:
    cache = Cache(8)
    cache.index.release(cache.compute(A, 3, "a"))
    taken, evicted = cache.pool.take(4)
    assert (len(set(taken)), evicted) == (4, [])
    assert cache.index.match(A, 3).num_blocks == 3


def test_deeper_blocks_of_one_request_go_first() -> None:
    cache = Cache(6)
    cache.index.release(cache.compute(A, 5, "a"))
    cache.pool.take(2)
    assert cache.index.match(A, 9).num_blocks == 3


def test_a_look_changes_nothing() -> None:
    cache = Cache(8)
    cache.index.release(cache.compute(A, 6, "a"))
    before = [list(run.ids) for run in cache.index.runs()]
    assert cache.index.match(A, 2) == cache.index.match(A, 2)
    assert [list(run.ids) for run in cache.index.runs()] == before


def test_of_two_copies_the_one_entered_first_is_used() -> None:
    cache = Cache(20)
    first, second = cache.compute(A, 4, "a"), cache.compute(A, 4, "b")
    assert ids(cache.hit(A, 4)) == ids(first) != ids(second)


def test_the_second_copy_is_used_when_the_first_is_gone() -> None:
    cache = Cache(9)
    first, second = cache.compute(A, 4, "a"), cache.compute(A, 4, "b")
    cache.index.release(first)
    cache.pool.take(2)
    assert ids(cache.hit(A, 4)) == [*ids(first)[:2], *ids(second)[2:]]


def test_what_continues_either_copy_is_found_behind_both() -> None:
    cache = Cache(20)
    cache.compute(A, 4, "a")
    cache.compute(A, 6, "b")
    assert cache.index.match(A, 9).num_blocks == 6


def test_a_split_leaves_the_lease_on_all_that_it_covered() -> None:
    cache = Cache(20)
    whole = cache.compute(A, 6, "a")
    held = ids(whole)
    cache.hit(stream((1, 0, 10), (2, 0, 50)), 5)
    cache.hit(A, 4)
    assert ids(whole) == held
    cache.index.release(whole)
    assert cache.index.num_evictable == 2
    cache.index.check_integrity()


def test_idle_blocks_of_a_match_are_counted() -> None:
    cache = Cache(20)
    cache.index.release(cache.compute(A, 6, "a"))
    cache.hit(A, 2)
    match = cache.index.match(A, 5)
    assert (match.num_blocks, match.num_idle) == (5, 3)


def test_only_the_beginning_that_agrees_is_hit() -> None:
    cache = Cache(20)
    cache.compute(A, 6, "a")
    assert cache.index.match(stream((1, 0, 11), (2, 0, 50)), 9).num_blocks == 2
    assert cache.index.match(stream((1, 4, 40)), 9).num_blocks == 0


def test_the_null_block_is_never_handed_out() -> None:
    assert sorted(Cache(5).pool.take(4)[0]) == [1, 2, 3, 4]
