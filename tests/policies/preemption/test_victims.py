"""Who gives way is who the policy says, and waits where it says."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from llmsim.policies.core.plan import Preemption
from llmsim.policies.core.records import Status
from llmsim.policies.core.sequence import Sequence
from llmsim.policies.registry import PolicyError, create
from llmsim.tests.support.driven_core import VLLM, DrivenCore, core_of, request_of
from llmsim.tests.support.traffic import drive, random_core, random_requests, random_stops

PLACED = ["newest", "fewest_outputs", "least_computed"]


def preemptions(spec: dict[str, Any], requests: list[tuple[str, int, int, int]], **limits: Any) -> list[Preemption]:
    """What is preempted when (name, step of arrival, prompt tokens, max_tokens) meet a small memory."""
    driven = DrivenCore(
        core_of(VLLM | {"preemption": spec}, **{"block_size": 2, "enable_prefix_caching": False} | limits)
    )
    coming = {name: at for name, at, *_ in requests}
    for step in range(200):
        for name, at, num_prompt, max_tokens in requests:
            if at == step:
                driven.add(request_of(name, num_prompt, max_tokens, arrival_ns=at), step)
                del coming[name]
        if driven.is_busy:
            driven.step(step)
        elif not coming:
            break
    assert {account.record.status for account in driven.accounts.values()} == {Status.FINISHED}
    return [preemption for flight in driven.flights for preemption in flight.plan.preempted]


OLD_AND_YOUNG = [("old", 0, 2, 30), ("young", 6, 14, 25)]
"""The old one has more outputs, the young one more that is computed."""


@pytest.mark.parametrize(
    ("name", "first"), [("newest", "young"), ("fewest_outputs", "young"), ("least_computed", "old")]
)
@pytest.mark.parametrize("depth", [1, 2])
def test_the_victim_is_whom_the_policy_names(name: str, first: str, depth: int) -> None:
    victims = preemptions({"name": name}, OLD_AND_YOUNG, num_blocks=22, depth=depth)
    assert victims[0].sequence.id == first


def test_of_equal_outputs_the_longest_prompt_gives_way() -> None:
    together = [("short", 0, 3, 12), ("long", 0, 9, 12), ("last", 0, 5, 12)]
    assert preemptions({"name": "fewest_outputs"}, together, num_blocks=14)[0].sequence.id == "long"
    assert preemptions({"name": "newest"}, together, num_blocks=14)[0].sequence.id == "last"


@pytest.mark.parametrize("name", PLACED)
def test_who_gave_way_is_first_again_or_waits_behind_the_others(name: str) -> None:
    for to in ("front", "tail"):
        driven = DrivenCore(
            core_of(VLLM | {"preemption": {"name": name, "to": to}}, num_blocks=13, block_size=2, max_num_seqs=2)
        )
        for request in ("a", "b", "c"):
            driven.add(request_of(request, 4, 16), 0)
        while not any(flight.plan.preempted for flight in driven.flights):
            driven.step(0)
        ((victim, *_),) = driven.flights[-1].plan.preempted
        order = [sequence.id for sequence in driven.core.waiting]
        assert order == ([victim.id, "c"] if to == "front" else ["c", victim.id])


@pytest.mark.parametrize("name", PLACED)
def test_places_are_front_and_tail(name: str) -> None:
    with pytest.raises(PolicyError, match="'middle' is unknown; choose front, tail"):
        create("preemption", {"name": name, "to": "middle"})


class Named:
    """Remembers what it chose from."""

    def __init__(self, policy: Any) -> None:
        self._policy = policy
        self.put_back = policy.put_back

    def victim(self, running: list[Sequence]) -> Sequence:
        victim: Sequence = self._policy.victim(running)
        assert victim in running
        assert not any(sequence.in_batch for sequence in running)
        least = {
            "FewestOutputs": lambda s: s.num_tokens - s.prompt_tokens,
            "LeastComputed": lambda s: s.computed,
        }[type(self._policy).__name__]
        assert least(victim) == min(map(least, running))
        return victim


@pytest.mark.parametrize("name", ["fewest_outputs", "least_computed"])
@pytest.mark.parametrize("to", ["front", "tail"])
def test_under_any_traffic_the_least_gives_way_and_all_are_served(name: str, to: str) -> None:
    num_preemptions = 0
    for seed in range(40):
        random = Random(seed)
        scheduling = random.choice(({"name": "fcfs"}, {"name": "priority"}, {"name": "shortest_prompt_first"}))
        core = random_core(random, specs={"preemption": {"name": name, "to": to}, "scheduling": scheduling})
        core.policies = core.policies._replace(preemption=Named(core.policies.preemption))
        requests = random_requests(random, 20)
        driven = DrivenCore(core, random_stops(random, requests))
        drive(driven, requests, random)
        core.check_integrity()
        assert {a.record.status for a in driven.accounts.values()} <= {Status.FINISHED, Status.REFUSED}
        num_preemptions += sum(account.record.num_preemptions for account in driven.accounts.values())
    assert num_preemptions > 50
