"""Static batching admits a batch, runs it to its end, and only then admits the next."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from llmsim.policies.core.records import Blocked, Status
from llmsim.tests.support.driven_core import VLLM, DrivenCore, Flight, core_of, request_of
from llmsim.tests.support.traffic import drive, random_core, random_requests, random_stops

STATIC: dict[str, dict[str, Any]] = VLLM | {"batching": {"name": "static"}}


def batches(driven: DrivenCore) -> list[list[str]]:
    """Who was admitted together."""
    admissions = [[a.sequence.id for a in flight.plan.admitted] for flight in driven.flights]
    return [names for names in admissions if names]


def run(lengths: dict[str, int], specs: dict[str, dict[str, Any]] = STATIC, **limits: Any) -> DrivenCore:
    driven = DrivenCore(core_of(specs, **{"num_blocks": 99} | limits))
    for name, max_tokens in lengths.items():
        driven.add(request_of(name, 8, max_tokens), 0)
    driven.run()
    return driven


def test_a_batch_is_as_large_as_the_slots() -> None:
    assert batches(run({"a": 3, "b": 9, "c": 2, "d": 2, "e": 2}, max_num_seqs=2)) == [["a", "b"], ["c", "d"], ["e"]]


def test_the_next_batch_waits_for_the_longest_of_the_last() -> None:
    driven = run({"a": 3, "b": 9, "c": 2}, max_num_seqs=2)
    assert driven.accounts["c"].record.admitted_ns == driven.accounts["b"].times_ns[-1] + 10
    assert driven.accounts["c"].record.blocked_by is Blocked.SLOTS


def test_a_batch_is_as_large_as_the_memory() -> None:
    driven = run({"a": 3, "b": 3, "c": 3}, num_blocks=11, block_size=2)
    assert batches(driven) == [["a", "b"], ["c"]]
    assert driven.flights[0].plan.blocked is Blocked.MEMORY


def test_a_batch_is_as_large_as_the_budget_and_what_is_cut_short_goes_on() -> None:
    driven = run({"a": 3, "b": 3, "c": 3}, max_num_batched_tokens=12)
    assert batches(driven) == [["a", "b"], ["c"]]
    assert [flight.given.get("b") for flight in driven.flights[:2]] == [4, 4]


def test_a_chunk_size_a_step_cuts_the_batchs_prefill() -> None:
    driven = run({"a": 3, "b": 3}, STATIC | {"chunk_size": {"name": "fixed", "tokens": 5}})
    assert [flight.given.get("a") for flight in driven.flights[:2]] == [5, 3]
    assert driven.flights[0].plan.num_prefill_tokens == 5


def test_a_chunk_size_a_request_cuts_each_ones_prefill() -> None:
    driven = run({"a": 3, "b": 3}, STATIC | {"chunk_size": {"name": "threshold", "tokens": 5}})
    assert [flight.given for flight in driven.flights[:2]] == [{"a": 5, "b": 5}, {"a": 3, "b": 3}]


def test_without_chunked_prefill_only_whole_prompts_are_admitted() -> None:
    driven = run({"a": 3, "b": 3}, max_num_batched_tokens=12, enable_chunked_prefill=False)
    assert batches(driven) == [["a"], ["b"]]
    assert driven.flights[0].plan.blocked is Blocked.BUDGET


def test_the_reason_to_wait_is_what_ended_the_batch() -> None:
    driven = run({"a": 3, "b": 3}, STATIC | {"chunk_size": {"name": "fixed", "tokens": 8}})
    assert [flight.plan.blocked for flight in driven.flights[:3]] == [Blocked.CHUNK, Blocked.SLOTS, Blocked.SLOTS]
    assert driven.flights[-1].plan.blocked is None


class CheckedCore(DrivenCore):
    """A driven core that sees to it that nobody joins a batch under way."""

    def plan(self, now_ns: int) -> Flight | None:
        before = set(self.core.running)
        flight = super().plan(now_ns)
        if flight is not None and before:
            assert not flight.plan.admitted
            assert set(self.core.running) <= before
        return flight


@pytest.mark.parametrize("depth", [1, 2])
def test_nobody_joins_a_batch_under_way_and_all_finish(depth: int) -> None:
    num_preempted = 0
    for seed in range(40):
        random = Random(seed)
        requests = random_requests(random, 20)
        core = random_core(random, depth=depth, num_speculative_tokens=0, specs={"batching": {"name": "static"}})
        driven = CheckedCore(core, random_stops(random, requests))
        drive(driven, requests, random)
        for account in driven.accounts.values():
            assert account.record.status in (Status.FINISHED, Status.REFUSED)
            num_preempted += account.record.num_preemptions
        assert core.num_free_blocks == core.config.num_blocks - 1
        core.check_integrity()
    assert num_preempted > 0
