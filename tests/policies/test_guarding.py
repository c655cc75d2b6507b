"""Whatever a user's policy does wrong is noticed and told; one that does nothing wrong decides as without a watch."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from llmsim.policies.core.config import Policies
from llmsim.policies.errors import PolicyFault
from llmsim.policies.guarding import Guarded, watches_of
from llmsim.tests.support.driven_core import VLLM, DrivenCore, core_of
from llmsim.tests.support.traffic import drive, random_requests, random_stops

FAULTY = "llmsim.tests.support.faulty_policies"
HOUSE = VLLM | {"chunk_size": {"name": "fixed", "tokens": 20}}
GOOD: dict[str, dict[str, Any]] = {
    "batching": {"name": f"{FAULTY}:GoodBatching"},
    "scheduling": {"name": f"{FAULTY}:GoodScheduling"},
    "preemption": {"name": f"{FAULTY}:GoodPreemption"},
    "chunk_size": {"name": f"{FAULTY}:GoodChunk", "tokens": 20},
    "eviction": {"name": f"{FAULTY}:GoodEviction"},
}


def driven_by(specs: dict[str, dict[str, Any]], seed: int, **pinned: Any) -> DrivenCore:
    """Tight traffic to its end."""
    random = Random(seed)
    limits = {"num_blocks": 30, "block_size": 4, "max_num_seqs": 4, "max_num_batched_tokens": 40} | pinned
    requests = random_requests(random, 25)
    driven = DrivenCore(core_of(specs, **limits), random_stops(random, requests))
    drive(driven, requests, random)
    return driven


@pytest.mark.parametrize("depth", [1, 2])
def test_a_watched_policy_decides_as_one_of_the_house(depth: int) -> None:
    for seed in range(6):
        digests = [
            [flight.plan.digest() for flight in driven_by(specs, seed, depth=depth).flights] for specs in (HOUSE, GOOD)
        ]
        assert digests[0] == digests[1]


def test_only_policies_that_are_none_of_the_house_are_watched() -> None:
    assert watches_of(Policies.of(VLLM)) == []
    mixed = Policies.of(VLLM | {"scheduling": GOOD["scheduling"]})
    assert [isinstance(policy, Guarded) for policy in mixed] == [False, True, False, False, False]
    assert len(watches_of(mixed)) == 1


def test_promises_and_parameters_are_read_through_the_watch() -> None:
    good = Policies.of(GOOD)
    assert (good.batching.decodes_alone, good.preemption.takes_last, good.chunk_size.tokens) == (True, True, 20)
    assert not hasattr(good.scheduling, "takes_last")


@pytest.mark.parametrize(
    ("kind", "name", "says"),
    [
        ("scheduling", "Raises", "reorder raised KeyError: 'nothing' (faulty_policies.py, line "),
        ("scheduling", "Exits", "reorder raised SystemExit: 0 (faulty_policies.py, line "),
        ("scheduling", "Drops", "reorder dropped r0 of 1 waiting sequences"),
        ("scheduling", "Doubles", "reorder left r"),
        ("scheduling", "Invents", "reorder queued r0, which did not wait"),
        ("scheduling", "Forgets", "insert was to queue r0 and left 0 sequences of 0"),
        ("eviction", "Vague", "rank returned None; it must be a number or a tuple of numbers"),
        ("eviction", "NoNumber", "rank returned (1.0, nan); it must be a number or a tuple of numbers"),
        ("eviction", "Wavers", "rank returned 1 after (1, 0); ranks must be numbers, or tuples of one length"),
        ("preemption", "Unknown", "victim named 'r0', which is none of the "),
        ("preemption", "Empties", "victim raised IndexError: list index out of range (faulty_policies.py, line "),
        ("preemption", "Loses", "put_back was to queue r"),
        ("chunk_size", "Negative", "step_tokens returned -1; it must be None or a whole number, at least 0"),
        ("chunk_size", "Broken", "request_tokens returned 2.5; it must be None or a whole number, at least 1"),
        ("batching", "Insatiable", "compose gives r"),
        ("batching", "Overcommits", "compose gives r"),
        ("batching", "Crowds", "compose admits r"),
        ("batching", "Regrets", "compose preempts r0, which it has admitted in this step"),
        ("batching", "Revives", "compose extends r0, which does not run"),
        ("batching", "Repeats", "compose decodes the batch twice in one step"),
        ("batching", "Circles", "compose calls the builder for ever: 1,101 times for 1 sequences"),
        ("batching", "Retries", "compose calls the builder for ever: "),
    ],
)
def test_what_a_policy_does_wrong_is_named(kind: str, name: str, says: str) -> None:
    spec = {"name": f"{FAULTY}:{name}"} | ({"tokens": 20} if kind == "chunk_size" else {})
    with pytest.raises(PolicyFault) as caught:
        driven_by(VLLM | {kind: spec}, 0)
    fault = caught.value
    assert (fault.kind, fault.name) == (kind, f"{FAULTY}:{name}")
    assert f"{fault.during} {fault.says}".startswith(says)
