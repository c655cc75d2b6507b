"""Who is let in, who ends when, and in which order."""

from __future__ import annotations

import re
from typing import Any

import pytest

from llmsim.policies.core.config import EngineConfig
from llmsim.policies.core.plan import StepResult
from llmsim.policies.core.records import Status
from llmsim.policies.core.request import Prompt, Request
from llmsim.tests.support.driven_core import BY_PRIORITY, DrivenCore, core_of, request_of

# Refusals


@pytest.mark.parametrize(
    ("num_prompt", "max_tokens", "limits", "reason"),
    [
        (0, 5, {}, "the prompt is empty"),
        (5, 0, {}, "max_tokens is 0"),
        (60, 41, {"max_model_len": 100}, "prompt and max_tokens (101) exceed max_model_len (100)"),
        (30, 12, {"num_blocks": 11, "block_size": 4}, "prompt and max_tokens (42) need 11 KV blocks of 10"),
        (
            41,
            12,
            {"enable_chunked_prefill": False, "max_num_batched_tokens": 40},
            "without chunked prefill 41 tokens exceed max_num_batched_tokens",
        ),
    ],
)
def test_a_request_that_can_never_be_served_is_refused(
    num_prompt: int, max_tokens: int, limits: dict[str, Any], reason: str
) -> None:
    driven = DrivenCore(core_of(**{"num_blocks": 100} | limits))
    refused = request_of("a", num_prompt, max_tokens)
    assert driven.core.refusal(refused) == reason
    assert driven.add(refused, 0).status is Status.REFUSED
    assert driven.plan(0) is None
    record = driven.add(request_of("b", 5, 5), 0)
    driven.run()
    assert record.status is Status.FINISHED


@pytest.mark.parametrize(
    ("num_prompt", "max_tokens", "limits"),
    [
        (60, 40, {"max_model_len": 100}),
        (30, 11, {"num_blocks": 11, "block_size": 4}),
        (30, 10, {"num_blocks": 11, "block_size": 4, "num_speculative_tokens": 1}),
        (40, 11, {"enable_chunked_prefill": False, "max_num_batched_tokens": 40}),
    ],
)
def test_the_largest_request_that_fits_is_served(num_prompt: int, max_tokens: int, limits: dict[str, Any]) -> None:
    driven = DrivenCore(core_of(**{"num_blocks": 100} | limits))
    record = driven.add(request_of("a", num_prompt, max_tokens), 0)
    driven.run()
    assert (record.status, record.output_tokens) == (Status.FINISHED, max_tokens)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"num_blocks": 1}, "num_blocks: 1 is out of range; at least 2"),
        ({"block_size": 0}, "block_size: 0 is out of range; at least 1"),
        ({"max_num_seqs": 0}, "max_num_seqs: 0 is out of range; at least 1"),
        ({"max_num_batched_tokens": 0}, "max_num_batched_tokens: 0 is out of range; at least 1"),
        ({"depth": 3}, "depth: 3 is out of range; 1 or 2"),
        ({"watermark": 1.0}, "watermark: 1.0 is out of range; at least 0, below 1"),
        ({"num_speculative_tokens": -1}, "num_speculative_tokens: -1 is out of range; at least 0"),
        (
            {"num_speculative_tokens": 1, "depth": 2},
            "num_speculative_tokens: cannot be combined with asynchronous scheduling",
        ),
    ],
)
def test_limits_that_no_engine_runs_are_told_in_one_line(limits: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        EngineConfig(**{"num_blocks": 10} | limits)


def test_two_requests_of_one_name_assert() -> None:
    core = core_of(num_blocks=10)
    core.add_request(request_of("a", 4, 4), 0)
    with pytest.raises(AssertionError, match="two requests are called a"):
        core.add_request(request_of("a", 4, 4), 0)


# Steps


def test_there_is_nothing_to_plan_in_an_idle_engine() -> None:
    assert core_of(num_blocks=10).plan_step(0) is None


@pytest.mark.parametrize("depth", [1, 2])
def test_no_more_plans_are_in_flight_than_the_depth(depth: int) -> None:
    core = core_of(num_blocks=10, depth=depth)
    core.add_request(request_of("a", 4, 9), 0)
    for _ in range(depth):
        assert core.plan_step(0) is not None
    with pytest.raises(AssertionError, match="plans in flight"):
        core.plan_step(0)


def test_plans_are_committed_in_their_order() -> None:
    core = core_of(num_blocks=10, depth=2)
    core.add_request(request_of("a", 4, 9), 0)
    core.plan_step(0)
    second = core.plan_step(0)
    assert second is not None
    with pytest.raises(AssertionError, match="in the order in which they were made"):
        core.commit_step(second, StepResult(0), 1)


def steps_that_serve(depth: int, stop: int | None, max_tokens: int) -> tuple[int, DrivenCore]:
    driven = DrivenCore(core_of(num_blocks=20, block_size=4, depth=depth), {} if stop is None else {"a": stop})
    driven.add(request_of("a", 5, max_tokens), 0)
    driven.run()
    return sum("a" in flight.given for flight in driven.flights), driven


@pytest.mark.parametrize("depth", [1, 2])
def test_a_request_that_ends_by_length_takes_a_step_a_token(depth: int) -> None:
    assert steps_that_serve(depth, None, 6)[0] == 6


@pytest.mark.parametrize("stop", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("depth", [1, 2])
def test_a_stop_wastes_a_step_where_the_next_plan_was_made_already(depth: int, stop: int) -> None:
    num_steps, driven = steps_that_serve(depth, stop, 20)
    record = driven.accounts["a"].record
    assert num_steps == stop + (depth - 1)
    assert (record.status, record.output_tokens) == (Status.FINISHED, stop)
    assert record.last_token_ns == driven.accounts["a"].times_ns[-1]
    assert driven.core.num_free_blocks == 19


def test_a_stop_at_the_last_token_but_one_wastes_nothing_more_with_the_end_in_flight() -> None:
    num_steps, driven = steps_that_serve(2, 5, 6)
    assert (num_steps, driven.accounts["a"].record.output_tokens) == (6, 5)
    assert not driven.is_busy


def test_a_stop_while_preempted_ends_the_request_from_the_queue() -> None:
    driven = DrivenCore(core_of(num_blocks=7, block_size=2, depth=2), {"b": 3})
    for name in "ab":
        driven.add(request_of(name, 4, 5), 0)
    driven.run()
    record = driven.accounts["b"].record
    assert (record.num_preemptions, record.output_tokens, record.status) == (1, 3, Status.FINISHED)
    assert sum(admission.resumed for flight in driven.flights for admission in flight.plan.admitted) == 0


# Order


def first_scheduled(driven: DrivenCore) -> list[str]:
    order: list[str] = []
    for flight in driven.flights:
        order += [name for name in flight.given if name not in order]
    return order


def test_first_come_is_first_served() -> None:
    driven = DrivenCore(core_of(num_blocks=50, max_num_seqs=1))
    for name, priority in (("a", 3), ("b", 1), ("c", 2)):
        driven.add(request_of(name, 4, 3, priority=priority), 0)
    driven.run()
    assert first_scheduled(driven) == ["a", "b", "c"]


def test_the_most_urgent_is_served_first_and_equals_in_order_of_arrival() -> None:
    driven = DrivenCore(core_of(BY_PRIORITY, num_blocks=50, max_num_seqs=1))
    for name, arrival_ns, priority in (("a", 0, 3), ("b", 5, 1), ("c", 4, 1), ("d", 5, 1), ("e", 6, 0)):
        driven.add(request_of(name, 4, 3, arrival_ns=arrival_ns, priority=priority), 6)
    driven.run()
    assert first_scheduled(driven) == ["e", "c", "b", "d", "a"]


def test_the_least_urgent_gives_way_and_comes_back_by_urgency() -> None:
    driven = DrivenCore(core_of(BY_PRIORITY, num_blocks=7, block_size=2))
    for name, priority in (("a", 2), ("b", 1)):
        driven.add(request_of(name, 4, 6, priority=priority), 0)
    driven.run()
    preempted = [p for flight in driven.flights for p in flight.plan.preempted]
    assert {(p.sequence.id, p.by.id) for p in preempted} == {("a", "b")}
    assert driven.accounts["b"].record.num_preemptions == 0


def test_the_tokens_of_a_victim_go_to_those_behind_who_preempted_it() -> None:
    limits = {"num_blocks": 7, "block_size": 4, "max_num_batched_tokens": 10, "enable_prefix_caching": False}
    driven = DrivenCore(core_of(BY_PRIORITY, **limits, reserve_full_prompt=False))
    driven.add(request_of("a", 11, 5, priority=9), 0)
    driven.step(0)
    driven.add(request_of("b", 4, 5, priority=1), 10)
    driven.add(request_of("c", 16, 1, priority=1), 10)
    driven.step(10)
    driven.step(20)
    assert [flight.given for flight in driven.flights] == [{"a": 10}, {"a": 1, "b": 4, "c": 5}, {"b": 1, "c": 9}]
    (preemption,) = driven.flights[-1].plan.preempted
    assert (preemption.sequence.id, preemption.by.id, preemption.num_blocks) == ("a", "b", 3)


def test_the_newest_gives_way_and_is_recomputed_with_its_outputs() -> None:
    driven = DrivenCore(core_of(num_blocks=7, block_size=2, enable_prefix_caching=False))
    for name in "ab":
        driven.add(request_of(name, 4, 6), 0)
    driven.run()
    (preemption,) = [p for flight in driven.flights for p in flight.plan.preempted]
    assert (preemption.sequence.id, preemption.by.id, preemption.num_blocks) == ("b", "a", 3)
    resumed = next(f for f in driven.flights if any(a.resumed for a in f.plan.admitted))
    outputs_before = sum(1 for f in driven.flights[: driven.flights.index(resumed)] if "b" in f.samplers)
    assert resumed.given["b"] == 4 + outputs_before > 4


def test_one_that_does_not_fit_blocks_all_behind_it() -> None:
    driven = DrivenCore(core_of(num_blocks=10, block_size=2))
    for name, num_prompt in (("a", 8), ("large", 14), ("small", 2)):
        driven.add(request_of(name, num_prompt, 2), 0)
    driven.run()
    assert first_scheduled(driven) == ["a", "large", "small"]
    assert "small" not in driven.flights[0].given


def test_a_later_turn_hits_what_the_turn_before_generated() -> None:
    driven = DrivenCore(core_of(num_blocks=50, block_size=4))
    driven.add(Request("a", 0, Prompt([(1, 0, 8)]), 9, 50), 0)
    driven.run()
    record = driven.add(Request("b", 0, Prompt([(1, 0, 8), (50, 0, 9), (2, 0, 5)]), 1, 51), 0)
    driven.run()
    assert record.cached_tokens == 16


# What a cost model is told


def test_a_plan_tells_how_many_of_its_chunks_end_before_their_prompt() -> None:
    driven = DrivenCore(core_of(num_blocks=100, max_num_batched_tokens=24))
    driven.add(request_of("a", 20, 2), 0)
    driven.add(request_of("b", 20, 2), 0)
    driven.run()
    shapes = [flight.plan.shape() for flight in driven.flights]
    chunks = [[q for q, _ in shape.prefill_chunks] for shape in shapes]
    assert chunks[:2] == [[20, 4], [16]]
    assert [(shape.num_samples, shape.num_unfinished) for shape in shapes[:2]] == [(2, 1), (2, 0)]
