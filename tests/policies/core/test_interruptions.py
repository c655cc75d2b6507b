"""Aborts and early stops, at any moment, leave the core where they leave the plain scheduler."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from llmsim.policies.core.request import Prompt, Request
from llmsim.scenarios.vllm_decisions import vllm_core
from llmsim.tests.support.cases import random_case
from llmsim.tests.support.driven_core import DrivenCore
from llmsim.tests.support.interrupted import InterruptedScheduler
from llmsim.tests.support.plain_request import PlainRequest, PlainStep, request_of

SEEDS_A_TEST = 100


class Lockstep:
    """One random case, run by the core and by the plain scheduler, with the same interruptions."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        case = random_case(seed)
        self.requests = [request_of(entry, index) for index, entry in enumerate(case["requests"])]
        share = self.random.choice((0.0, 0.3, 0.9))
        stopping = [r for r in self.requests if len(r.outputs) > 1 and self.random.random() < share]
        stops = {r.id: self.random.randint(1, len(r.outputs) - 1) for r in stopping}
        self.abort_chance = self.random.choice((0.0, 0.02, 0.2))
        self.plain = InterruptedScheduler(case["config"], stops)
        self.plain_pipe: deque[PlainStep] = deque()
        self.core = vllm_core(case["config"])
        accepts = {r.id: r.accept for r in self.requests}
        self.driven = DrivenCore(self.core, stops, accepts, {r.id: r.outputs for r in self.requests})
        self.arrivals = deque(sorted(self.requests, key=lambda r: r.arrival_step))
        self.events: set[str] = set()

    def run(self) -> None:
        """Step both until all is done, comparing after each call."""
        now = 0
        while self.arrivals or self.driven.is_busy:
            while self.arrivals and self.arrivals[0].arrival_step <= now:
                self._add(self.arrivals.popleft())
            self._maybe_abort(now)
            flight = self.driven.plan(now)
            if flight is not None:
                self._plan(flight.plan, flight.given)
                self._maybe_abort(now)
            if self.plain_pipe and (flight is None or len(self.plain_pipe) == self.core.config.depth):
                finished = [sequence.id for sequence in self.driven.commit(now).finished]
                assert finished == [r.id for r in self.plain.update(self.plain_pipe.popleft())]
            self._compare()
            now += 1
        assert self.core.num_free_blocks == self.core.config.num_blocks - 1

    def _add(self, request: PlainRequest) -> None:
        prompt = Prompt.of_tokens(request.tokens)
        made = Request(request.id, request.arrival_step, prompt, len(request.outputs), -1, request.priority)
        self.driven.add(made, request.arrival_step)
        self.plain.add(request)

    def _maybe_abort(self, now: int) -> None:
        there = [*self.plain.running, *self.plain.waiting]
        if there and self.random.random() < self.abort_chance:
            victim = self.random.choice(there)
            state = self.core.sequences[victim.id]
            self.events.add(f"{state.state.value}{' batch' * state.in_batch}{' flight' * bool(self.plain_pipe)}")
            self.driven.abort(victim.id, now)
            self.plain.abort(victim)
            self._compare()

    def _plan(self, plan: Any, given: dict[str, int]) -> None:
        step = self.plain.schedule()
        self.plain_pipe.append(step)
        assert given == {r.id: n for r, n in step.scheduled.items()}
        assert list(given) == [r.id for r in step.scheduled]
        assert [p.sequence.id for p in plan.preempted] == [r.id for r in step.preempted]
        admitted = {a.sequence.id: a.num_cached_tokens for a in plan.admitted}
        assert admitted == {r.id: n for r, n in (step.new | step.resumed).items()}

    def _compare(self) -> None:
        core, plain = self.core, self.plain
        assert [s.id for s in core.running.values()] == [r.id for r in plain.running]
        assert [s.id for s in core.waiting] == [r.id for r in plain.waiting]
        assert core.num_free_blocks == plain.memory.num_free
        assert core.kv_cache.pool.num_evicted == plain.memory.pool.num_evicted
        core.check_integrity()


@pytest.mark.parametrize("first", range(0, 300, SEEDS_A_TEST))
def test_interruptions_leave_the_core_where_they_leave_the_plain_scheduler(first: int) -> None:
    for seed in interruptible(first):
        Lockstep(seed).run()


def interruptible(first: int) -> Iterator[int]:
    yield from range(first, first + SEEDS_A_TEST)
