"""The calendar of requests that stop by themselves says of each plan what an account of all outputs says."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from llmsim.policies.core.plan import StepEvents
from llmsim.policies.core.request import Output, Request
from llmsim.policies.core.stop_calendar import StopCalendar
from llmsim.tests.support.driven_core import DrivenCore, Flight, core_of, request_of
from llmsim.tests.support.traffic import drive, random_core, random_requests, random_stops


class ForetoldCore(DrivenCore):
    """A driven core whose calendar is asked right after each plan, and checked when it is committed."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.calendar = StopCalendar()
        self.foretold: dict[int, list[str]] = {}
        self.num_stopped = 0

    def plan(self, now_ns: int) -> Flight | None:
        flight = super().plan(now_ns)
        if flight is not None:
            self.foretold[flight.plan.step] = self.calendar.stopped(flight.plan)
        return flight

    def commit(self, now_ns: int) -> StepEvents:
        step = self.pipe[0].plan.step
        alive = {name for name in self.foretold[step] if self.accounts[name].is_alive}
        events = super().commit(now_ns)
        assert alive == set(self.result.stopped), step
        self.num_stopped += len(alive)
        for sequence in events.finished:
            self.calendar.forget(sequence.id)
        return events


def foretold(random: Random, requests: list[Request], **pinned: Any) -> ForetoldCore:
    chosen = random_stops(random, requests)
    stops = {r.id: chosen[r.id] for r in requests if chosen.get(r.id, r.max_tokens) < r.max_tokens}
    driven = ForetoldCore(random_core(random, num_speculative_tokens=0, **pinned), stops)
    for request in requests:
        length = stops.get(request.id, request.max_tokens)
        driven.calendar.expect(request.id, request.max_tokens, Output(length))
    return driven


@pytest.mark.parametrize("depth", [1, 2])
def test_each_plan_is_told_who_gets_the_last_token_with_it(depth: int) -> None:
    num_stopped = 0
    for seed in range(40):
        random = Random(seed)
        requests = random_requests(random, 20)
        driven = foretold(random, requests, depth=depth)
        drive(driven, requests, random, abort_chance=random.choice((0.0, 0.02)))
        num_stopped += driven.num_stopped
    assert num_stopped > 50


def test_the_steps_up_to_the_next_stop_are_counted() -> None:
    core, calendar = core_of(num_blocks=100), StopCalendar()
    for name, length in (("a", 8), ("b", 5)):
        core.add_request(request_of(name, 4, 20), 0)
        calendar.expect(name, 20, Output(length))
    plan = core.plan_step(0)
    assert plan is not None
    assert calendar.stopped(plan) == []
    assert calendar.steps_to_stop(core.batch.planned) == 4
    calendar.forget("a")
    calendar.forget("b")
    assert calendar.steps_to_stop(core.batch.planned) is None
