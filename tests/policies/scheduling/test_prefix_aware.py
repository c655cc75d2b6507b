"""Cache locality with a bounded wait: what the cache holds comes first, within a window."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest

from llmsim.policies.core.records import record_of
from llmsim.policies.core.request import Prompt, Request
from llmsim.policies.core.sequence import Sequence
from llmsim.policies.core.waiting_queue import WaitingQueue
from llmsim.policies.scheduling.prefix_aware import PrefixAware

S = 1_000_000_000


class View:
    """An engine at a time, whose cache holds so many tokens of each request."""

    def __init__(self, now_ns: int, cached: dict[str, int]) -> None:
        self.now_ns = now_ns
        self.cached = cached

    def peek_prefix(self, sequence: Sequence) -> int:
        return self.cached[sequence.id]


def waiting(policy: PrefixAware, arrivals_s: list[float]) -> WaitingQueue:
    queue = WaitingQueue()
    for index, arrival_s in enumerate(arrivals_s):
        request = Request(f"r{index}", round(arrival_s * S), Prompt([(index, 0, 100)]), 10, -index - 1)
        policy.insert(queue, Sequence(request, index, record_of(request)))
    return queue


def order(policy: PrefixAware, arrivals_s: list[float], cached: list[int], now_s: float) -> list[str]:
    queue = waiting(policy, arrivals_s)
    policy.reorder(queue, View(round(now_s * S), {f"r{i}": count for i, count in enumerate(cached)}))
    return [sequence.id for sequence in queue]


def test_what_is_cached_overtakes_what_is_not() -> None:
    assert order(PrefixAware(), [0, 1, 2], [0, 0, 95], 10) == ["r2", "r0", "r1"]


def test_nearly_all_cached_goes_before_half_cached() -> None:
    assert order(PrefixAware(), [0, 0, 0], [0, 50, 95], 10) == ["r2", "r1", "r0"]


def test_without_a_window_or_patience_it_is_first_come_first_served() -> None:
    for policy in (PrefixAware(window_s=0), PrefixAware(patience=0)):
        assert order(policy, [0, 1, 2], [0, 30, 99], 10) == ["r0", "r1", "r2"]


def test_nobody_is_overtaken_by_who_arrives_later_than_the_window() -> None:
    random, overtaken = Random(0), 0
    for _ in range(200):
        arrivals = sorted(random.uniform(0, 60) for _ in range(12))
        cached = [random.randrange(100) for _ in arrivals]
        names = order(PrefixAware(window_s=8), arrivals, cached, 60)
        place = {int(name[1:]): index for index, name in enumerate(names)}
        for early, late in combinations(range(12), 2):
            if place[late] < place[early]:
                overtaken += 1
                assert arrivals[late] - arrivals[early] <= 8
    assert overtaken > 100


def test_those_behind_the_first_most_stay_where_they_are() -> None:
    assert order(PrefixAware(most=2), [0, 1, 2, 3], [0, 90, 0, 99], 10) == ["r1", "r0", "r2", "r3"]


@pytest.mark.parametrize("values", [{"window_s": -1}, {"patience": float("nan")}, {"most": 0}])
def test_values_out_of_range_are_errors(values: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(values))}: .* is out of range; at least"):
        PrefixAware(**values)  # type: ignore[arg-type]
