"""Who touched which block last is what a plain list of blocks, walked for each request, says."""

from __future__ import annotations

import math
from random import Random

import pytest

from llmsim.scenarios.workloads.recency import Recency, Reuse

FAR = 10**9


class PlainRecency:
    """Every block, and who touched it last."""

    def __init__(self) -> None:
        self.prompts: list[list[tuple[int, int]]] = []
        self.touched_by: dict[tuple[int, int], int] = {}

    def add(self, num_blocks: int, source: int | None, num_reused: int) -> None:
        number = len(self.prompts)
        reused = [] if source is None else self.prompts[source][:num_reused]
        prompt = reused + [(number, place) for place in range(num_reused, num_blocks)]
        self.prompts.append(prompt)
        for block in prompt:
            self.touched_by[block] = number

    def distance_to(self, number: int) -> int:
        return sum(last > number for last in self.touched_by.values())

    def taken_from(self, number: int) -> int:
        return sum(self.touched_by[block] != number for block in self.prompts[number])


def random_request(draw: Random, number: int) -> tuple[int, Reuse]:
    """How many blocks it has, and what it wants of earlier ones."""
    num_blocks = draw.randint(1, 12)
    wanted = draw.randint(0, num_blocks - 1)
    return num_blocks, Reuse(wanted, draw.randint(0, 5 * number), draw.randint(0, max(wanted - 1, 0)))


@pytest.mark.parametrize("seed", range(20))
def test_distances_and_what_is_taken_are_those_of_a_plain_list(seed: int) -> None:
    draw = Random(seed)
    recency, plain = Recency(FAR, nearness_blocks=3.0), PlainRecency()
    for number in range(150):
        num_blocks, wanted = random_request(draw, number)
        source, num_reused = recency.source_for(wanted) or (None, 0)
        assert list(recency.add(num_blocks, num_blocks - 1, source, num_reused)) == []
        plain.add(num_blocks, source, num_reused)
        if number % 10 == 9:
            for one in range(number + 1):
                assert recency.distance_to(one) == plain.distance_to(one)
                assert recency.taken_from(one) == plain.taken_from(one)
    assert recency.num_added_blocks == len(plain.touched_by)


@pytest.mark.parametrize("seed", range(10))
def test_the_source_is_the_nearest_of_all_that_own_the_last_block(seed: int) -> None:
    draw = Random(100 + seed)
    recency, plain, reusable = Recency(FAR, nearness_blocks=3.0), PlainRecency(), []
    for number in range(80):
        num_blocks, wanted = random_request(draw, number)
        found = recency.source_for(wanted)
        if found is not None:
            source, num_reused = found
            assert num_reused == min(wanted.num_blocks, max(reusable))
            younger = min(wanted.younger_blocks, num_reused - 1)

            def cost(one: int, blocks: int = num_reused, younger: int = younger, far: int = wanted[1]) -> float:
                ratio = (plain.distance_to(one) + 3.0) / (far + 3.0)
                touched = max(plain.taken_from(one) - younger, 0) / (blocks - younger)
                return abs(math.log(ratio)) + touched + 3 * (reusable[one] - blocks) / reusable[one]

            able = [n for n in range(number) if plain.taken_from(n) < num_reused <= reusable[n]]
            assert source in able
            assert cost(source) == pytest.approx(min(map(cost, able)))
        source_or_none, num_reused = found or (None, 0)
        recency.add(num_blocks, num_blocks - 1, source_or_none, num_reused)
        plain.add(num_blocks, source_or_none, num_reused)
        reusable.append(num_blocks - 1)


def test_what_lies_too_far_back_is_forgotten_and_the_rest_is_as_before() -> None:
    draw = Random(7)
    whole, short = Recency(FAR, 1.0), Recency(200, 1.0)
    first = 0
    for number in range(5000):
        num_blocks, wanted = random_request(draw, min(number, 10))
        source, num_reused = short.source_for(wanted) or (None, 0)
        whole.add(num_blocks, num_blocks - 1, source, num_reused)
        forgotten = short.add(num_blocks, num_blocks - 1, source, num_reused)
        assert forgotten.start == first
        first = forgotten.stop
        assert whole.distance_to(first) <= 200 < (whole.distance_to(first - 1) if first else FAR)
        if number % 500 == 0:
            assert [short.distance_to(n) for n in range(first, number)] == [
                whole.distance_to(n) for n in range(first, number)
            ]
    assert number - first < 200


def test_where_nothing_can_be_reused_there_is_no_source() -> None:
    recency = Recency(FAR, 1.0)
    assert recency.source_for(Reuse(3, 0, 0)) is None
    recency.add(1, 0, None, 0)
    assert recency.source_for(Reuse(3, 0, 0)) is None
    recency.add(3, 2, None, 0)
    assert recency.source_for(Reuse(3, 0, 2)) == (1, 2)  # as much as there is
    assert recency.source_for(Reuse(0, 0, 0)) is None
