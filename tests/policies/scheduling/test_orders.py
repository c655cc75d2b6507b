"""Each order admits who it says it does, and costs no more the more wait."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from llmsim.policies.core.records import record_of
from llmsim.policies.core.request import Request
from llmsim.policies.core.sequence import Sequence
from llmsim.policies.core.waiting_queue import WaitingQueue
from llmsim.policies.registry import create
from llmsim.tests.support.driven_core import VLLM, DrivenCore, core_of, request_of


def admissions(scheduling: dict[str, Any], requests: list[Request]) -> list[str]:
    """Who was admitted when, one at a time, all being there at the start."""
    driven = DrivenCore(core_of(VLLM | {"scheduling": scheduling}, num_blocks=99, max_num_seqs=1))
    for request in requests:
        driven.add(request, 100)
    driven.run(100)
    return [a.sequence.id for flight in driven.flights for a in flight.plan.admitted]


def four(**columns: list[Any]) -> list[Request]:
    """Requests a, b, c, d, alike but for some fields."""
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return [replace(request_of(name, 9, 4), **row) for name, row in zip("abcd", rows, strict=True)]


def test_the_shortest_prompt_is_first_and_equals_come_in_order_of_arrival() -> None:
    requests = [request_of(name, length, 3) for name, length in zip("abcd", (30, 8, 20, 8), strict=True)]
    assert admissions({"name": "shortest_prompt_first"}, requests) == ["b", "d", "c", "a"]


def test_lof_admits_who_may_generate_most() -> None:
    assert admissions({"name": "lof"}, four(max_tokens=[2, 9, 5, 9])) == ["b", "d", "c", "a"]


def test_sjf_goes_by_the_prediction_and_not_by_the_truth() -> None:
    assert admissions({"name": "sjf"}, four(predicted_tokens=[7, 3, 9, 3], max_tokens=[1, 5, 2, 9])) == [*"bdac"]


def test_the_earliest_deadline_is_first_and_who_has_none_is_last() -> None:
    assert admissions({"name": "edf"}, four(deadline_ns=[900, None, 50, 400])) == ["c", "d", "a", "b"]


def test_a_random_order_belongs_to_seed_and_requests() -> None:
    requests = [request_of(f"r{number}", 9, 2) for number in range(8)]
    orders = [tuple(admissions({"name": "random", "seed": seed}, requests)) for seed in (1, 1, 2, 3)]
    assert orders[0] == orders[1]
    assert len(set(orders)) == 3
    without = [name for name in orders[0] if name != "r3"]
    assert admissions({"name": "random", "seed": 1}, [r for r in requests if r.id != "r3"]) == without


@pytest.mark.parametrize("name", ["shortest_prompt_first", "lof", "sjf", "edf", "random", "priority"])
def test_an_order_that_does_not_change_looks_at_few_of_those_that_wait(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy, queue, looks = create("scheduling", {"name": name}), WaitingQueue(), 0
    count, insert_by = 4096, WaitingQueue.insert_by

    def counted(self: WaitingQueue, sequence: Sequence, key: Any) -> None:
        def look(other: Sequence) -> Any:
            nonlocal looks
            looks += 1
            return key(other)

        insert_by(self, sequence, look)

    monkeypatch.setattr(WaitingQueue, "insert_by", counted)
    for number in range(count):
        request = replace(request_of(f"{number}", 1 + number * 37 % 101, 9), predicted_tokens=number * 41 % 97)
        policy.insert(queue, Sequence(request, number, record_of(request)))
    assert len(queue) == count
    assert looks < count * 15  # log2(4096) + itself + rounding
