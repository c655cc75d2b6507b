"""Whatever the traffic: limits hold, every request ends, and records and events say what happened."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from llmsim.policies.core.plan import StepEvents
from llmsim.policies.core.records import RequestRecord, Status
from llmsim.policies.core.request import Request
from llmsim.policies.core.sequence import Sequence
from llmsim.tests.support.driven_core import DrivenCore, Flight
from llmsim.tests.support.traffic import drive, random_core, random_requests, random_stops

NUM_SEEDS = 80
SEEDS_A_TEST = 40


class CheckedCore(DrivenCore):
    """A driven core that holds each plan and each commit against its own account."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.computed: Counter[str] = Counter()
        """Tokens whose KV is there, by request."""
        self.preemptions: Counter[str] = Counter()
        self.chunks: Counter[str] = Counter()
        self.num_evicted = 0
        self.unmeasured: set[str] = set()
        self.mirror: set[Sequence] = set()
        """The decode batch, as an executor knows it from the plans."""

    def add(self, request: Request, now_ns: int) -> RequestRecord:
        """Every third request is none of those that are measured."""
        record = super().add(request, now_ns)
        if len(self.accounts) % 3 == 0 and record.status is not Status.REFUSED:
            self.core.sequences[request.id].is_measured = False
            self.unmeasured.add(request.id)
        return record

    def plan(self, now_ns: int) -> Flight | None:
        core = self.core
        crowd = len(core.running) + len(core.waiting)
        flight = super().plan(now_ns)
        if flight is not None:
            self._check_limits(flight, crowd)
            self._check_moves(flight)
            self._check_context(flight)
            self._check_thrift(flight, crowd)
            self.mirror = self.mirror - set(flight.plan.left) | set(flight.plan.joined)
            assert self.mirror == set(core.batch.members())
            core.check_integrity()
        return flight

    def _check_limits(self, flight: Flight, crowd: int) -> None:
        plan, core = flight.plan, self.core
        assert plan.num_tokens == sum(flight.given.values()) <= core.config.max_num_batched_tokens
        assert plan.num_running == len(core.running) <= core.config.max_num_seqs
        prefill = {r.sequence.id: r.num_tokens - r.num_drafts for r in plan.rows if r.is_prefill}
        assert plan.num_prefill_tokens == sum(prefill.values())
        self.chunks.update(prefill.keys())
        if plan.admitted and plan.num_running > 1:
            assert plan.num_free_blocks >= core.watermark_blocks
        tokens = getattr(core.policies.chunk_size, "tokens", None)
        if tokens is not None and core.policies.chunk_size.step_tokens(core) is not None:
            assert plan.num_prefill_tokens <= tokens
        elif tokens is not None and crowd > 1:
            assert max(flight.given.values(), default=0) <= tokens

    def _check_moves(self, flight: Flight) -> None:
        plan = flight.plan
        for victim, by, num_blocks, reason in plan.preempted:
            self.preemptions[victim.id] += 1
            self.computed[victim.id] = 0
            assert victim.id not in flight.given
            assert by.id in flight.given or by in [p.sequence for p in plan.preempted]
            assert num_blocks > 0
            assert reason in ("prefill", "decode")
        for sequence, num_cached_tokens, resumed in plan.admitted:
            assert self.computed[sequence.id] == 0
            assert resumed == bool(self.preemptions[sequence.id])
            self.computed[sequence.id] = num_cached_tokens
        admitted = {a.sequence.id for a in plan.admitted}
        for owner, by_id, num_blocks, reason in plan.evictions:
            self.num_evicted += num_blocks
            assert owner in self.accounts
            assert (by_id in admitted) == (reason == "admit")
            if by_id is None:
                assert (reason, plan.num_decodes > 0) == ("decode", True)
                assert admitted >= {row.sequence.id for row in plan.rows}, "the batch was not served as a whole"
            else:
                assert by_id in flight.given or by_id in [p.sequence.id for p in plan.preempted]
        assert self.num_evicted == self.core.kv_cache.pool.num_evicted

    def _check_context(self, flight: Flight) -> None:
        plan = flight.plan
        self.computed.update(flight.given)
        members = flight.given.keys() - {row.sequence.id for row in plan.rows}
        assert plan.context_tokens() == sum(self.computed[name] for name in flight.given)
        assert plan.decode_context_tokens == sum(self.computed[name] for name in members)
        assert plan.max_decode_context == max((self.computed[name] for name in members), default=0)
        assert all(row.num_computed + row.num_tokens == self.computed[row.sequence.id] for row in plan.rows)

    def _check_thrift(self, flight: Flight, crowd: int) -> None:
        """Who runs and got less than it still has to compute was cut by a limit that is used up.

        Not so who preempted: its tokens were counted before its victim's went back to the budget.
        """
        chunk_size, plan = self.core.policies.chunk_size, flight.plan
        tokens = getattr(chunk_size, "tokens", None)
        for sequence in self.core.running.values():
            account, name = self.accounts[sequence.id], sequence.id
            known = account.num_outputs + len(account.request.prompt)
            known += sum(name in earlier.samplers for earlier in self.pipe if earlier is not flight)
            preempts = any(preemption.by is sequence for preemption in plan.preempted)
            if preempts or known >= sequence.end or self.computed[name] >= known:
                continue
            is_used_up = plan.num_tokens == self.core.config.max_num_batched_tokens
            if tokens is not None and chunk_size.step_tokens(self.core) is not None:
                is_used_up |= plan.num_prefill_tokens == tokens
            elif tokens is not None and crowd > 1:
                is_used_up |= flight.given.get(name) == tokens
            assert is_used_up, (name, known, self.computed[name], flight.given)

    def commit(self, now_ns: int) -> StepEvents:
        flight = self.pipe[0]
        alive = [name for name in flight.samplers if self.accounts[name].is_alive]
        events = super().commit(now_ns)
        gaps: Counter[int] = Counter()
        for name in set(alive) - self.unmeasured:
            times_ns = self.accounts[name].times_ns
            if len(times_ns) > 1:
                gaps[times_ns[-1] - times_ns[-2]] += 1
        told: Counter[int] = Counter()
        for gap_ns, count in events.gaps:
            told[gap_ns] += count
        assert told == gaps
        for name, num_drafts in flight.drafts.items():
            self.computed[name] -= num_drafts - (self.result.accepted or {}).get(name, 0)
        self.core.check_integrity()
        return events


def run(seed: int, **pinned: Any) -> tuple[CheckedCore, dict[str, int], list[Request]]:
    random = Random(seed)
    requests = random_requests(random, 25)
    stops = random_stops(random, requests)
    accepts = {r.id: [random.randint(0, 3) for _ in range(3)] for r in requests}
    driven = CheckedCore(random_core(random, **pinned), stops, accepts)
    drive(driven, requests, random, abort_chance=random.choice((0.0, 0.0, 0.03)))
    return driven, stops, requests


@pytest.mark.parametrize("first", range(0, NUM_SEEDS, SEEDS_A_TEST))
def test_limits_hold_and_plans_and_commits_are_as_counted(first: int) -> None:
    num_preempted = num_evicted = 0
    for seed in range(first, first + SEEDS_A_TEST):
        driven, _, _ = run(seed)
        num_preempted += sum(driven.preemptions.values())
        num_evicted += driven.num_evicted
    assert num_preempted > 50
    assert num_evicted > 500


@pytest.mark.parametrize("first", range(1000, 1000 + NUM_SEEDS, SEEDS_A_TEST))
def test_every_request_ends_and_its_record_is_what_was_counted(first: int) -> None:
    statuses: Counter[Status] = Counter()
    for seed in range(first, first + SEEDS_A_TEST):
        driven, stops, requests = run(seed)
        assert driven.core.num_free_blocks == driven.core.config.num_blocks - 1
        for request in requests:
            account = driven.accounts[request.id]
            record, times_ns = account.record, account.times_ns
            statuses[record.status] += 1
            assert record.status is not Status.UNFINISHED
            assert record.output_tokens == account.num_outputs
            first_ns, last_ns = (times_ns[0], times_ns[-1]) if times_ns else (None, None)
            assert (record.first_token_ns, record.last_token_ns) == (first_ns, last_ns)
            gaps = [b - a for a, b in pairwise(times_ns)]
            assert record.max_gap_ns == max(gaps, default=None)
            assert record.num_preemptions == driven.preemptions[request.id]
            assert record.num_chunks == driven.chunks[request.id]
            if record.status is Status.FINISHED:
                assert min(request.max_tokens, stops.get(request.id, request.max_tokens)) <= account.num_outputs
                assert account.num_outputs <= request.max_tokens
    assert min(statuses[s] for s in (Status.FINISHED, Status.ABORTED, Status.REFUSED)) > 10


@pytest.mark.parametrize("depth", [1, 2])
def test_a_step_is_wasted_only_on_who_stops_by_itself_with_a_plan_in_flight(depth: int) -> None:
    num_wasted = 0
    for seed in range(2000, 2030):
        driven, _, requests = run(seed, depth=depth, num_speculative_tokens=0)
        samples = Counter(name for flight in driven.flights for name in flight.samplers)
        for request in requests:
            account = driven.accounts[request.id]
            if account.record.status is Status.FINISHED:
                wasted = samples[request.id] - account.num_outputs
                num_wasted += wasted
                assert 0 <= wasted <= (depth == 2 and account.num_outputs < request.max_tokens)
    assert (num_wasted > 0) == (depth == 2)
