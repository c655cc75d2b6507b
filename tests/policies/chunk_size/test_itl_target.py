"""A step with decodes takes no longer than the target, holds as much prefill as that allows, and prompts get on."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from llmsim.policies.chunk_size.itl_target import GRAIN_TOKENS
from llmsim.policies.core.plan import StepPlan
from llmsim.policies.core.records import Status
from llmsim.policies.core.request import Request
from llmsim.policies.registry import PolicyError, create
from llmsim.tests.support.driven_core import VLLM, DrivenCore, core_of, request_of
from llmsim.tests.support.linear_estimator import LinearEstimator
from llmsim.tests.support.traffic import drive

LEAST = 16


def driven_at(target_ns: int, **limits: Any) -> DrivenCore:
    specs = VLLM | {"chunk_size": {"name": "itl_target", "itl_s": target_ns / 1e9, "least_tokens": LEAST}}
    base = {"num_blocks": 5000, "max_num_batched_tokens": 2000}
    return DrivenCore(core_of(specs, estimator=LinearEstimator(), **base | limits))


def step_ns(plan: StepPlan, depth: int, more: int = 0) -> int:
    """What the step takes, with `more` tokens in its last chunk."""
    shape = plan.shape()
    chunks = list(shape.prefill_chunks)
    if more:
        chunks[-1] = (chunks[-1][0] + more, chunks[-1][1])
    cost = LinearEstimator().step_cost(shape._replace(prefill_chunks=chunks))
    return max(cost.device_ns, cost.host_ns) if depth > 1 else cost.device_ns + cost.host_ns


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("target_ns", [400, 1500, 6000])
def test_a_step_with_decodes_keeps_the_target_and_wastes_none_of_it(target_ns: int, depth: int) -> None:
    num_cut = num_least = 0
    for seed in range(8):
        random = Random(seed)
        driven = driven_at(target_ns, depth=depth)
        requests, now_ns = [], 0
        for number in range(25):
            now_ns += random.choice((0, 10, 100))
            requests.append(request_of(f"r{number}", random.randint(1, 600), random.randint(1, 40), arrival_ns=now_ns))
        drive(driven, requests, random)
        assert {account.record.status for account in driven.accounts.values()} == {Status.FINISHED}
        for flight in driven.flights:
            plan = flight.plan
            if not plan.num_decodes or not plan.num_prefill_tokens:
                continue
            if plan.num_prefill_tokens > LEAST:
                assert step_ns(plan, depth) <= target_ns
            num_least += plan.num_prefill_tokens == LEAST
            last = plan.rows[-1]
            left = last.sequence.prompt_tokens - last.num_computed - last.num_tokens
            if left >= GRAIN_TOKENS and plan.num_prefill_tokens > LEAST:  # its prompt was cut
                num_cut += 1
                assert step_ns(plan, depth, GRAIN_TOKENS) > target_ns
    assert num_least if target_ns == 400 else num_cut > 20


def test_nothing_is_limited_where_nobody_decodes() -> None:
    driven = driven_at(1)
    driven.add(request_of("long", 5000, 2), 0)
    driven.step(0)
    assert driven.flights[0].plan.num_prefill_tokens == 2000


def test_prompts_get_on_where_the_decodes_alone_take_longer() -> None:
    driven = driven_at(1)
    driven.add(request_of("decodes", 4, 50), 0)
    driven.step(0)
    driven.add(request_of("long", 100, 2), 1)
    driven.step(1)
    assert driven.flights[-1].plan.num_prefill_tokens == LEAST


def test_what_is_cached_of_a_waiting_prompt_counts_as_context_and_not_as_work() -> None:
    driven = driven_at(2000, block_size=4)
    long = request_of("long", 400, 2)
    driven.add(long, 0)
    driven.run()
    driven.add(request_of("decodes", 4, 50), 0)
    driven.step(0)
    driven.add(Request("again", 0, long.prompt, 2, 99), 1)
    (prefill,) = driven.core.outlook.prefills()
    assert prefill == (4, 396)
    driven.step(1)
    assert driven.flights[-1].plan.num_prefill_tokens == 4


def test_a_step_without_prefill_asks_nothing() -> None:
    driven = driven_at(1000)
    driven.add(request_of("decodes", 4, 50), 0)
    driven.run()
    estimator: Any = driven.core.policies.chunk_size._estimator  # type: ignore[attr-defined]
    assert estimator.num_asked == 0


@pytest.mark.parametrize(
    ("spec", "key", "says"),
    [
        ({}, "itl_s", "is missing; itl_target needs it"),
        ({"itl_s": 0}, "itl_s", "0 is out of range; above 0"),
        ({"itl_s": 0.1, "least_tokens": 0}, "least_tokens", "0 is out of range; at least 1"),
    ],
)
def test_target_and_least_are_checked(spec: dict[str, Any], key: str, says: str) -> None:
    with pytest.raises(PolicyError) as caught:
        create("chunk_size", {"name": "itl_target", **spec})
    assert (caught.value.key, str(caught.value)) == (key, says)


def test_without_an_estimate_of_step_times_it_is_refused() -> None:
    with pytest.raises(PolicyError, match="itl_target requires an estimate of what a step costs, which there is none"):
        core_of(VLLM | {"chunk_size": {"name": "itl_target", "itl_s": 0.1}}, num_blocks=9)
