"""The list of runs goes in the order in which single blocks, deepest first, were freed."""

from __future__ import annotations

from random import Random

import pytest

from llmsim.policies.core.block_runs import Node, Run
from llmsim.policies.core.release_order import ReleaseOrder
from llmsim.policies.core.request import Prompt
from llmsim.policies.core.token_stream import TokenStream

NODE = Node(None, (), TokenStream(Prompt(), 0), 0, 0)


def run_of(*ids: int) -> Run:
    return Run(NODE, list(ids), f"r{ids[0]}", 0, 0)


def split(released: ReleaseOrder, run: Run, length: int) -> Run:
    """What the index does to an evictable run: its first blocks become a run of their own."""
    front = run.split_off(NODE, length)
    released.split(run, front)
    return front


def evict(released: ReleaseOrder, num_blocks: int) -> list[int]:
    """Give up `num_blocks` blocks as the index does; returns them in order."""
    gone: list[int] = []
    while len(gone) < num_blocks:
        run, count = released.choose(num_blocks - len(gone))
        gone += reversed(run.ids[len(run.ids) - count :])
        del run.ids[len(run.ids) - count :]
        if run.ids:
            released.shrunk(run)
        else:
            released.evicted(run)
    return gone


def test_the_run_freed_first_goes_first_from_its_end() -> None:
    released = ReleaseOrder()
    released.freed(run_of(1, 2, 3))
    released.freed(run_of(4, 5))
    assert evict(released, 4) == [3, 2, 1, 5]


def test_a_run_goes_in_part_where_that_is_enough() -> None:
    released, first, second = ReleaseOrder(), run_of(1, 2, 3), run_of(4, 5)
    released.freed(first)
    released.freed(second)
    assert released.choose(2) == (first, 2)
    assert released.choose(4) == (first, 3)


def test_choosing_changes_nothing() -> None:
    released = ReleaseOrder()
    released.freed(run_of(1, 2, 3))
    assert released.choose(2) == released.choose(2)


def test_a_split_run_keeps_its_turn() -> None:
    released, run = ReleaseOrder(), run_of(1, 2, 3, 4)
    released.freed(run_of(8, 9))
    released.freed(run)
    released.freed(run_of(6, 7))
    split(released, run, 3)
    assert evict(released, 8) == [9, 8, 4, 3, 2, 1, 7, 6]


def test_a_reused_front_leaves_the_deeper_blocks_where_they_were() -> None:
    released, run = ReleaseOrder(), run_of(1, 2, 3, 4)
    released.freed(run)
    released.freed(run_of(6, 7))
    released.reused(split(released, run, 2))
    assert evict(released, 4) == [4, 3, 7, 6]


def test_a_reused_front_goes_last_when_it_is_freed_again() -> None:
    released, run = ReleaseOrder(), run_of(1, 2, 3, 4)
    released.freed(run)
    released.freed(run_of(6, 7))
    front = split(released, run, 2)
    released.reused(front)
    released.freed(front)
    assert evict(released, 6) == [4, 3, 7, 6, 2, 1]


def test_choosing_more_than_there_is_asserts() -> None:
    released = ReleaseOrder()
    released.freed(run_of(1))
    with pytest.raises(AssertionError):
        evict(released, 2)


def test_the_check_misses_no_run() -> None:
    released, run = ReleaseOrder(), run_of(1, 2)
    released.freed(run)
    released.check_integrity({run})
    with pytest.raises(AssertionError):
        released.check_integrity(set())


@pytest.mark.parametrize("seed", range(20))
def test_any_sequence_of_operations_keeps_the_order_of_single_blocks(seed: int) -> None:
    random, released = Random(seed), ReleaseOrder()
    idle: list[Run] = []
    used: list[Run] = []
    order: list[int] = []  # blocks, the next to go first
    for number in range(200):
        kind = random.choice(("new", "free", "reuse", "split", "evict"))
        if kind == "new":
            used.append(run_of(*range(10 * number, 10 * number + random.randint(1, 5))))
        elif kind == "free" and used:
            run = used.pop(random.randrange(len(used)))
            released.freed(run)
            idle.append(run)
            order += reversed(run.ids)
        elif kind == "reuse" and idle:
            run = idle.pop(random.randrange(len(idle)))
            released.reused(run)
            used.append(run)
            order = [block for block in order if block not in run.ids]
        elif kind == "split" and idle:
            run = random.choice(idle)
            if len(run.ids) > 1:
                idle.append(split(released, run, random.randint(1, len(run.ids) - 1)))
        elif kind == "evict" and order:
            num_blocks = random.randint(1, len(order))
            assert evict(released, num_blocks) == order[:num_blocks]
            del order[:num_blocks]
            idle = [run for run in idle if run.ids]
        released.check_integrity(set(idle))
    assert evict(released, len(order)) == order
