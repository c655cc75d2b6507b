"""Preempted sequences on the host: memory adds up, nothing is recomputed, and the traffic is served all the same."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from llmsim.policies.core.config import EngineConfig
from llmsim.policies.core.engine import EngineCore
from llmsim.policies.core.journal import JournalWriter, read_journal
from llmsim.policies.core.plan import StepPlan
from llmsim.policies.core.records import EventKind, Status
from llmsim.policies.core.replay import Replay
from llmsim.policies.core.request import Request
from llmsim.sim.swap_figures import SWAPS
from llmsim.tests.policies.core.test_journal import JournaledCore
from llmsim.tests.support.driven_core import VLLM, DrivenCore, Flight, core_of, request_of
from llmsim.tests.support.swapping import SWAPPING, contend
from llmsim.tests.support.traffic import drive, random_core, random_requests, random_specs, random_stops

NUM_SEEDS = 90
VICTIMS = ("newest", "least_urgent", "fewest_outputs", "least_computed")


class HostAccount(DrivenCore):
    """A driven core beside a plain account of the host: who has how many blocks and tokens there."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.computed: Counter[str] = Counter()
        """Tokens whose KV is there, on the GPU or the host, by request."""
        self.blocks: dict[str, int] = {}
        self.seen: Counter[EventKind] = Counter()

    def plan(self, now_ns: int) -> Flight | None:
        flight = super().plan(now_ns)
        if flight is not None:
            self._follow(flight.plan)
            self._count(flight)
            self.core.check_integrity()
            waiting = {s.id: s.num_swapped for s in self.core.waiting if s.num_swapped}
            assert waiting == {name: self.computed[name] for name in self.blocks}
            assert self.core.host.num_used == sum(self.blocks.values()) <= self.core.config.num_host_blocks
        return flight

    def _follow(self, plan: StepPlan) -> None:
        """The swaps, in order; every victim has one."""
        size, hits = self.core.config.block_size, {a.sequence.id: a.num_cached_tokens for a in plan.admitted}
        outs = {EventKind.SWAP_OUT, EventKind.SWAP_FULL}
        assert [s.sequence for s in plan.swaps if s.kind in outs] == [p.sequence for p in plan.preempted]
        for kind, sequence, by, num_blocks, _ in plan.swaps:
            name = sequence.id
            self.seen[kind] += 1
            if kind is EventKind.SWAP_OUT:
                self.blocks[name] = -(-self.computed[name] // size)
                assert num_blocks == self.blocks[name]
                assert by is not None
            elif kind is EventKind.SWAP_FULL:
                free = self.core.config.num_host_blocks - sum(self.blocks.values())
                assert free < num_blocks == -(-self.computed[name] // size)
                self.computed[name] = 0
            else:
                held = self.blocks.pop(name)
                assert num_blocks == (max(0, held - hits[name] // size) if kind is EventKind.SWAP_IN else held)
        for sequence, hit, resumed in plan.admitted:
            assert resumed or not self.computed[sequence.id]
            self.computed[sequence.id] = max(hit, self.computed[sequence.id])

    def _count(self, flight: Flight) -> None:
        """What is computed begins where the account says; so nothing on the host is computed again."""
        for row in flight.plan.rows:
            assert row.num_computed == self.computed[row.sequence.id]
        for name, num_tokens in flight.given.items():
            self.computed[name] += num_tokens

    def commit(self, now_ns: int) -> Any:
        """Rejected drafts are taken back."""
        flight = self.pipe[0]
        events = super().commit(now_ns)
        for name, num_drafts in flight.drafts.items():
            self.computed[name] -= num_drafts - (self.result.accepted or {}).get(name, 0)
        return events


def swapping_core(seed: int, random: Random) -> EngineCore:
    specs, limits = random_specs(random), dict[str, int]()
    name = specs["preemption"]["name"] if seed % 2 else random.choice(VICTIMS)
    specs["preemption"] = {"name": name, "mode": "swap"}
    if seed % 5 == 0:
        specs["batching"] = {"name": "static"}
    if seed % 3:  # tighter memory than drafts could live with
        limits = {"num_blocks": random.choice((12, 25)), "depth": 1 + seed % 2, "num_speculative_tokens": 0}
    return random_core(random, specs=specs, num_host_blocks=random.choice((0, 6, 10_000, 10_000)), **limits)


def test_the_host_is_accounted_for_whatever_the_traffic() -> None:
    seen: Counter[EventKind] = Counter()
    for seed in range(NUM_SEEDS):
        random = Random(seed)
        requests = [replace(r, arrival_ns=r.arrival_ns // 20) for r in random_requests(random, 20)]
        driven = HostAccount(swapping_core(seed, random), random_stops(random, requests))
        chance = random.choice((0.0, 0.1))
        drive(driven, requests, random, abort_chance=chance)
        assert driven.core.host.num_used == 0
        for account in driven.accounts.values():
            record, want = account.record, account.request.max_tokens
            assert record.status in (Status.FINISHED, Status.REFUSED) or chance
            if record.status is Status.FINISHED:
                assert record.output_tokens == len(account.times_ns) <= want
        seen += driven.seen
    assert all(seen[kind] > 0 for kind in SWAPS), seen


@pytest.mark.parametrize("depth", [1, 2])
def test_swapping_delivers_the_tokens_that_recomputing_delivers(depth: int) -> None:
    num_preempted = 0
    for seed in range(25):
        random = Random(seed)
        requests = random_requests(random, 20)
        stops = random_stops(random, requests)
        outputs = []
        for mode in ("recompute", "swap"):
            specs = VLLM | {"preemption": {"name": "newest", "mode": mode}}
            core = core_of(specs, num_blocks=25, block_size=4, max_num_seqs=8, depth=depth, num_host_blocks=1000)
            driven = DrivenCore(core, stops)
            drive(driven, requests, Random(seed))
            outputs.append({name: account.num_outputs for name, account in driven.accounts.items()})
            num_preempted += sum(account.record.num_preemptions for account in driven.accounts.values())
        assert outputs[0] == outputs[1]
    assert num_preempted > 50


@pytest.mark.parametrize("depth", [1, 2])
def test_what_comes_back_needs_one_token_of_the_budget_and_is_a_decode(depth: int) -> None:
    core = core_of(SWAPPING, num_blocks=9, block_size=4, num_host_blocks=10, depth=depth, enable_prefix_caching=False)
    driven = DrivenCore(core)
    victim = contend(driven)
    swapped, chunks = victim.num_swapped, victim.record.num_chunks
    assert swapped >= 12
    driven.run()
    back = next(f.plan for f in driven.flights if any(s.kind is EventKind.SWAP_IN for s in f.plan.swaps))
    (row,) = [row for row in back.rows if row.sequence is victim]
    assert (row.num_computed, row.num_tokens, row.is_prefill) == (swapped, 1, False)
    assert back.num_blocks_copied == -(-swapped // 4)
    assert victim.record.num_chunks == chunks
    assert victim.record.output_tokens == 12


def test_what_the_prefix_index_still_holds_is_not_copied_back() -> None:
    core = core_of(SWAPPING, num_blocks=9, block_size=4, num_host_blocks=10)
    driven = DrivenCore(core)
    victim = contend(driven)
    held = core.host.num_used
    driven.run()
    swaps = [s for f in driven.flights for s in f.plan.swaps if s.sequence is victim]
    hit = next(a.num_cached_tokens for f in driven.flights for a in f.plan.admitted if a.resumed)
    assert [s.kind for s in swaps] == [EventKind.SWAP_OUT, EventKind.SWAP_IN]
    assert (swaps[0].num_blocks, swaps[1].num_blocks) == (held, held - hit // 4)
    assert hit > 0


def test_an_aborted_sequence_gives_its_host_memory_back() -> None:
    driven = DrivenCore(core_of(SWAPPING, num_blocks=9, block_size=4, num_host_blocks=10))
    victim = contend(driven)
    driven.abort(victim.id, 0)
    assert driven.core.host.num_used == 0
    driven.core.check_integrity()
    driven.run()
    assert driven.flights[-1].plan is not None
    kinds = [s.kind for f in driven.flights for s in f.plan.swaps]
    assert kinds == [EventKind.SWAP_OUT, EventKind.SWAP_DROP]


def test_a_full_host_lets_the_victim_be_recomputed() -> None:
    driven = DrivenCore(core_of(SWAPPING, num_blocks=9, block_size=4, num_host_blocks=2))
    for name in "ab":
        driven.add(request_of(name, 12, 12), 0)
    driven.run()
    kinds = [s.kind for f in driven.flights for s in f.plan.swaps]
    assert set(kinds) == {EventKind.SWAP_FULL}
    assert driven.accounts["b"].record.num_chunks == 1 + len(kinds)


def test_without_the_mode_host_memory_stays_empty_and_digests_are_as_before() -> None:
    driven = DrivenCore(core_of(VLLM, num_blocks=9, block_size=4, num_host_blocks=10))
    for name in "ab":
        driven.add(request_of(name, 12, 12), 0)
    driven.run()
    assert any(f.plan.preempted for f in driven.flights)
    assert not any(f.plan.swaps for f in driven.flights)
    assert not any("swap" in f.plan.digest() for f in driven.flights)


@pytest.mark.parametrize("depth", [1, 2])
def test_a_journal_of_swaps_replays_and_misses_none(tmp_path: Any, depth: int) -> None:
    path, num_swaps = tmp_path / "journal.gz", 0
    for seed in range(12):
        random = Random(seed)
        limits = {"num_blocks": 12, "block_size": 4, "max_num_seqs": 6, "depth": depth, "num_host_blocks": 20}
        driven = JournaledCore(core := core_of(SWAPPING, **limits))
        requests: list[Request] = random_requests(random, 20)
        with JournalWriter(path, core.config, SWAPPING, "0") as driven.journal:
            drive(driven, requests, random, abort_chance=0.03)
        assert Replay(read_journal(path)).run() is None
        swaps = [swap for flight in driven.flights for swap in flight.plan.swaps]
        num_swaps += len(swaps)
        if swaps:
            entries = list(read_journal(path))
            entries[0]["config"]["num_host_blocks"] = 0
            assert "differs" in (Replay(iter(entries)).run() or "")
    assert num_swaps > 30


def test_less_than_no_host_memory_is_refused() -> None:
    with pytest.raises(ValueError, match="num_host_blocks: -1 is out of range; at least 0"):
        EngineConfig(num_blocks=10, num_host_blocks=-1)
