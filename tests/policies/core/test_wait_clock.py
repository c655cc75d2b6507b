"""Why requests waited is what charging every waiting request at every step would say."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from llmsim.policies.core.records import Blocked
from llmsim.policies.core.sequence import State
from llmsim.tests.support.driven_core import VLLM, DrivenCore, core_of, request_of
from llmsim.tests.support.traffic import drive, random_core, random_requests, random_stops

SHARED = {Blocked.SLOTS, Blocked.BUDGET, Blocked.CHUNK}


class PlainAccount:
    """Each waiting request, charged by itself for the time from one planning to the next."""

    def __init__(self, driven: DrivenCore) -> None:
        self.driven = driven
        self.waits: dict[str, dict[Blocked, int]] = {}
        self._roles: dict[str, Blocked] = {}
        self._since_ns = 0

    def before_planning(self, now_ns: int) -> None:
        core = self.driven.core
        for sequence in core.waiting:
            if sequence.state is not State.WAITING:
                continue
            if sequence.id not in self.waits:
                self.waits[sequence.id] = {Blocked.ARRIVAL: now_ns - sequence.request.arrival_ns}
                continue
            waits, role = self.waits[sequence.id], self._roles[sequence.id]
            waits[role] = waits.get(role, 0) + now_ns - self._since_ns
        self._since_ns = now_ns

    def after_planning(self, blocked: Blocked | None) -> None:
        core = self.driven.core
        assert (blocked is not None) == bool(core.waiting)
        self._roles = {}
        for place, sequence in enumerate(core.waiting):
            assert blocked is not None
            self._roles[sequence.id] = blocked if place == 0 or blocked in SHARED else Blocked.ORDER


class AccountedCore(DrivenCore):
    """A driven core that keeps the plain account too."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.account = PlainAccount(self)

    def plan(self, now_ns: int) -> Any:
        self.account.before_planning(now_ns)
        flight = super().plan(now_ns)
        if flight is not None:
            self.account.after_planning(flight.plan.blocked)
            for admission in flight.plan.admitted:
                if not admission.resumed:
                    self._check(admission.sequence.id, now_ns)
        return flight

    def _check(self, name: str, now_ns: int) -> None:
        record, waits = self.accounts[name].record, self.account.waits[name]
        assert record.blocked_ns == now_ns - self.accounts[name].request.arrival_ns == sum(waits.values())
        longest = max(Blocked, key=lambda reason: waits.get(reason, 0))
        assert record.blocked_by == (longest if record.blocked_ns else None), (name, waits)


@pytest.mark.parametrize("first", range(0, 160, 40))
def test_reasons_are_those_of_charging_each_request_at_each_step(first: int) -> None:
    reasons: set[Blocked | None] = set()
    for seed in range(first, first + 40):
        random = Random(seed)
        requests = random_requests(random, 25)
        driven = AccountedCore(random_core(random), random_stops(random, requests))
        drive(driven, requests, random, abort_chance=random.choice((0.0, 0.05)))
        reasons |= {account.record.blocked_by for account in driven.accounts.values()}
    assert reasons == {None, *Blocked} - {Blocked.TRANSFER}


def waited(
    limits: dict[str, Any], chunk_size: dict[str, Any] | None = None, count: int = 3
) -> list[tuple[Blocked | None, int]]:
    """What kept equal requests, which arrive together, out before they were admitted one after the other."""
    driven = DrivenCore(core_of(VLLM | {"chunk_size": chunk_size or {"name": "unlimited"}}, **limits))
    for name in "abcd"[:count]:
        driven.add(request_of(name, 8, 4), 0)
    driven.run()
    return [(account.record.blocked_by, account.record.blocked_ns) for account in driven.accounts.values()]


def test_one_behind_another_for_want_of_slots_waits_for_slots() -> None:
    assert waited({"num_blocks": 99, "max_num_seqs": 1}) == [(None, 0), (Blocked.SLOTS, 40), (Blocked.SLOTS, 80)]


def test_one_behind_another_for_want_of_memory_waits_for_its_turn() -> None:
    first, second, _, fourth = waited({"num_blocks": 7, "block_size": 2}, count=4)
    assert (first, second, fourth) == ((None, 0), (Blocked.MEMORY, 40), (Blocked.ORDER, 120))


def test_one_behind_another_for_want_of_budget_waits_for_budget() -> None:
    limits = {"num_blocks": 99, "max_num_batched_tokens": 9}
    assert waited(limits) == [(None, 0), (None, 0), (Blocked.BUDGET, 10)]


def test_one_behind_another_for_want_of_prefill_tokens_waits_for_the_chunk_size() -> None:
    chunk_size = {"name": "fixed", "tokens": 8}
    assert waited({"num_blocks": 99}, chunk_size) == [(None, 0), (Blocked.CHUNK, 10), (Blocked.CHUNK, 20)]


def test_the_time_to_the_first_boundary_is_charged_to_the_arrival() -> None:
    driven = DrivenCore(core_of(num_blocks=99))
    record = driven.add(request_of("a", 8, 4, arrival_ns=3), 10)
    driven.step(10)
    assert (record.blocked_by, record.blocked_ns) == (Blocked.ARRIVAL, 7)
