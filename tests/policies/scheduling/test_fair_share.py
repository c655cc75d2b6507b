"""Tenants that keep asking are served alike, whatever they ask; who pauses saves nothing up."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from llmsim.policies.core.records import Status
from llmsim.policies.registry import PolicyError, create
from llmsim.tests.support.driven_core import VLLM, DrivenCore, core_of, request_of
from llmsim.tests.support.traffic import drive, random_core, random_requests

FAIR: dict[str, Any] = {"scheduling": {"name": "fair_share"}}
LARGEST = 40
"""Of prompts and outputs in these tests."""


def served(driven: DrivenCore) -> Counter[str]:
    """Service by tenant: prompt tokens of the admitted and twice their outputs."""
    service: Counter[str] = Counter()
    for account in driven.accounts.values():
        if account.record.admitted_ns is not None:
            computed = len(account.request.prompt) - account.record.cached_tokens
            service[account.request.tenant or ""] += computed + 2 * account.num_outputs
    return service


@pytest.mark.parametrize("specs", [VLLM, VLLM | FAIR])
def test_tenants_that_always_wait_are_served_within_the_bound_of_the_paper(specs: dict[str, Any]) -> None:
    random, slots = Random(3), 4
    driven = DrivenCore(core_of(specs, num_blocks=2000, max_num_seqs=slots))
    for number in range(400):  # the greedy sends four times as many, and longer ones, and comes first
        tenant = "greedy" if number % 5 else "modest"
        size = random.randint(LARGEST // 2, LARGEST) if tenant == "greedy" else random.randint(1, LARGEST // 2)
        driven.add(replace(request_of(f"{number}", size, size), tenant=tenant), 0)
    widest = 0
    for step in range(400):
        driven.step(step)
        waiting = {sequence.request.tenant for sequence in driven.core.waiting}
        assert waiting == {"greedy", "modest"}
        service = served(driven)
        widest = max(widest, abs(service["greedy"] - service["modest"]))
    bound = 2 * max(LARGEST, 2 * slots * LARGEST)  # theorem 4.4: 2 max(w_p L_input, w_q M)
    assert (widest <= bound) == (specs is not VLLM), (widest, bound)


def test_who_comes_back_begins_where_the_others_stand() -> None:
    driven = DrivenCore(core_of(VLLM | FAIR, num_blocks=900, max_num_seqs=1))
    for number in range(20):
        driven.add(replace(request_of(f"a{number}", 10, 10), tenant="a"), 0)
    for step in range(100):
        driven.step(step)
    for number in range(6):
        driven.add(replace(request_of(f"b{number}", 10, 10), tenant="b"), 100)
    driven.run(101)
    order = [a.sequence.request.tenant for flight in driven.flights for a in flight.plan.admitted]
    since = order.index("b")
    turns = Counter(order[since : since + 10])
    assert abs(turns["a"] - turns["b"]) <= 2  # all requests are alike


def test_a_tenant_without_others_is_served_in_order_of_arrival() -> None:
    driven = DrivenCore(core_of(VLLM | FAIR, num_blocks=900, max_num_seqs=2))
    for number in range(12):
        driven.add(request_of(f"{number}", 10 + number * 7 % 5, 3), 0)
    driven.run()
    order = [a.sequence.id for flight in driven.flights for a in flight.plan.admitted]
    assert order == [str(number) for number in range(12)]


def test_nobody_is_lost_with_aborts_and_preemptions() -> None:
    num_preemptions = 0
    for seed in range(60):
        random = Random(seed)
        preemption = random.choice(({"name": "newest"}, {"name": "least_urgent"}))
        driven = DrivenCore(random_core(random, specs=FAIR | {"preemption": preemption}))
        requests = [replace(r, tenant=random.choice(("x", "y", "z"))) for r in random_requests(random, 30)]
        drive(driven, requests, random, abort_chance=0.05)
        driven.core.check_integrity()
        ends = {account.record.status for account in driven.accounts.values()}
        assert ends <= {Status.FINISHED, Status.REFUSED, Status.ABORTED}
        num_preemptions += sum(account.record.num_preemptions for account in driven.accounts.values())
        scheduling: Any = driven.core.policies.scheduling
        assert not driven.core.waiting
        assert len(scheduling._charged) + len(scheduling._queued) <= len(requests)
    assert num_preemptions > 100


@pytest.mark.parametrize("weight", ["input_weight", "output_weight"])
def test_a_weight_is_not_negative(weight: str) -> None:
    with pytest.raises(PolicyError, match="-1 is out of range; at least 0") as caught:
        create("scheduling", {"name": "fair_share", weight: -1})
    assert caught.value.key == weight
