"""The list of runs goes in the order in which single blocks, deepest first, were freed."""

from __future__ import annotations

from random import Random

import pytest

from llmsim.policies.core.hash_blocks import Node, Run
from llmsim.policies.core.request import Prompt
from llmsim.policies.core.token_stream import TokenStream
from llmsim.policies.eviction.lru import Lru

NODE = Node(None, (), TokenStream(Prompt(), 0), 0, 0)


def run_of(*ids: int) -> Run:
    return Run(NODE, list(ids), f"r{ids[0]}", 0, None)


def split(lru: Lru, run: Run, length: int) -> Run:
    """What the index does to an evictable run: its first blocks become a run of their own."""
    front = Run(NODE, run.ids[:length], run.owner, 0, None)
    del run.ids[:length]
    lru.split(run, front)
    return front


def blocks(lru: Lru, num_blocks: int) -> list[int]:
    """The next blocks to go, in order."""
    return [block for run, count in lru.choose(num_blocks) for block in reversed(run.ids[len(run.ids) - count :])]


def test_the_run_freed_first_goes_first_from_its_end() -> None:
    lru = Lru()
    lru.freed(run_of(1, 2, 3))
    lru.freed(run_of(4, 5))
    assert blocks(lru, 4) == [3, 2, 1, 5]


def test_only_the_last_chosen_run_is_chosen_in_part() -> None:
    lru, first, second = Lru(), run_of(1, 2, 3), run_of(4, 5)
    lru.freed(first)
    lru.freed(second)
    assert lru.choose(4) == [(first, 3), (second, 1)]


def test_choosing_changes_nothing() -> None:
    lru = Lru()
    lru.freed(run_of(1, 2, 3))
    assert lru.choose(2) == lru.choose(2)


def test_a_split_run_keeps_its_turn() -> None:
    lru, run = Lru(), run_of(1, 2, 3, 4)
    lru.freed(run_of(8, 9))
    lru.freed(run)
    lru.freed(run_of(6, 7))
    split(lru, run, 3)
    assert blocks(lru, 8) == [9, 8, 4, 3, 2, 1, 7, 6]


def test_a_reused_front_leaves_the_deeper_blocks_where_they_were() -> None:
    lru, run = Lru(), run_of(1, 2, 3, 4)
    lru.freed(run)
    lru.freed(run_of(6, 7))
    lru.reused(split(lru, run, 2))
    assert blocks(lru, 4) == [4, 3, 7, 6]


def test_a_reused_front_goes_last_when_it_is_freed_again() -> None:
    lru, run = Lru(), run_of(1, 2, 3, 4)
    lru.freed(run)
    lru.freed(run_of(6, 7))
    front = split(lru, run, 2)
    lru.reused(front)
    lru.freed(front)
    assert blocks(lru, 6) == [4, 3, 7, 6, 2, 1]


def test_choosing_more_than_there_is_asserts() -> None:
    lru = Lru()
    lru.freed(run_of(1))
    with pytest.raises(AssertionError):
        lru.choose(2)


def test_the_check_misses_no_run() -> None:
    lru, run = Lru(), run_of(1, 2)
    lru.freed(run)
    lru.check_integrity({id(run)})
    with pytest.raises(AssertionError):
        lru.check_integrity(set())


@pytest.mark.parametrize("seed", range(20))
def test_any_sequence_of_operations_keeps_the_order_of_single_blocks(seed: int) -> None:
    random, lru = Random(seed), Lru()
    idle: list[Run] = []
    used: list[Run] = []
    order: list[int] = []  # blocks, the next to go first
    for number in range(200):
        kind = random.choice(("new", "free", "reuse", "split", "evict"))
        if kind == "new":
            used.append(run_of(*range(10 * number, 10 * number + random.randint(1, 5))))
        elif kind == "free" and used:
            run = used.pop(random.randrange(len(used)))
            lru.freed(run)
            idle.append(run)
            order += reversed(run.ids)
        elif kind == "reuse" and idle:
            run = idle.pop(random.randrange(len(idle)))
            lru.reused(run)
            used.append(run)
            order = [block for block in order if block not in run.ids]
        elif kind == "split" and idle:
            run = random.choice(idle)
            if len(run.ids) > 1:
                idle.append(split(lru, run, random.randint(1, len(run.ids) - 1)))
        elif kind == "evict" and order:
            evict(lru, idle, order, random.randint(1, len(order)))
        assert blocks(lru, len(order)) == order
        lru.check_integrity({id(run) for run in idle})


def evict(lru: Lru, idle: list[Run], order: list[int], num_blocks: int) -> None:
    """Give up `num_blocks` blocks as the index does."""
    for run, count in lru.choose(num_blocks):
        del run.ids[len(run.ids) - count :]
        if not run.ids:
            lru.evicted(run)
            idle.remove(run)
    del order[:num_blocks]
