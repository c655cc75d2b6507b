"""The SimPy driver: arrivals come when they come, the engine steps, results are committed, everything is recorded.

With one plan in flight a step costs host and device time after one another. With two (asynchronous scheduling) step
N+1 is planned while N runs; N+2 is planned when N ends, and a step costs the larger of the two:

    host     plan 1 | plan 2 |   commit 1, plan 3   | commit 2, plan 4
    device          [   step 1   ][   step 2   ][   step 3   ]

An arrival at the very nanosecond of a step boundary is seen at that boundary: steps end after all other events.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from heapq import heappop, heappush
from typing import Any, Protocol

import simpy
from simpy.events import Event

from ..policies.core.bookkeeping import Bookkeeper, Flight, Journal, Recorder
from ..policies.core.engine import EngineCore
from ..policies.core.estimator import StepCost
from ..policies.core.frontend import DIRECT, Frontend
from ..policies.core.intake import Intake
from ..policies.core.plan import StepPlan, StepResult
from ..policies.core.request import Arrival, Output, Request
from ..policies.core.stall import check_stall
from ..policies.core.workload import Workload
from .executor import SimExecutor
from .step_end import StepEnd
from .stretch import Stretch


class StepExecutor(Protocol):
    """What a driver in virtual time asks of an executor."""

    def expect(self, request: Request, output: Output) -> None:
        """Learn of a request before it is given to the core, and what it will generate."""
        ...

    def forget(self, request_id: str) -> None:
        """The request ended."""
        ...

    def execute(self, plan: StepPlan) -> tuple[StepResult, StepCost]:
        """Predict a step, or carry it out and measure. To be called right after it was planned."""
        ...


class SimDriver:
    """One engine under one workload in virtual time."""

    def __init__(
        self,
        core: EngineCore,
        executor: StepExecutor,
        workload: Workload,
        recorder: Recorder,
        *,
        frontend: Frontend = DIRECT,
        warmup_ns: int = 0,
        journal: Journal | None = None,
        leaps: bool = True,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """`leaps`: steps in which nothing can be decided are carried out in one go; a SimExecutor alone can do that."""
        self.core = core
        self._executor = executor
        self._workload = workload
        self._frontend = frontend
        self._journal = journal
        self._on_progress = on_progress
        self._env = simpy.Environment(initial_time=0)
        self._intake = Intake(core, executor, workload, recorder, self, frontend, warmup_ns, journal)
        self._num_expected = 0  # arrivals under way, and the source while it is open
        self._wake: Event | None = None
        self._due: list[int] = []  # heap: when the requests under way will reach the inbox
        self._books = Bookkeeper(recorder)
        self._stretch: Stretch | None = None
        if leaps and journal is None:  # a journal holds every plan
            assert isinstance(executor, SimExecutor), "only a predicted stretch can be skipped"
            self._stretch = Stretch(core, executor, recorder, self._books)
        self._flights: deque[Flight] = deque()
        self._device_free_ns = 0
        self._host_free_ns = 0

    def run(self) -> int:
        """Run until every request has ended; returns the time of the end."""
        self._num_expected = 1
        self._env.process(self._source())
        self._env.run(until=self._env.process(self._engine()))
        return int(self._env.now)

    # Requests

    def _source(self) -> Generator[Event, Any, None]:
        env, ingress = self._env, self._frontend.ingress_ns
        for arrival in self._workload.arrivals():
            delay = arrival.time_ns + ingress - int(env.now)
            if delay > 0:
                heappush(self._due, arrival.time_ns + ingress)
                yield env.timeout(delay)
                heappop(self._due)
            self._receive(arrival)
        self._num_expected -= 1
        self._alert()

    def arrive_at(self, due_ns: int, arrival: Arrival) -> None:
        """Let a request that another's end set off come in time."""
        self._num_expected += 1
        heappush(self._due, due_ns)
        self._env.process(self._later(arrival, due_ns - int(self._env.now)))

    def _later(self, arrival: Arrival, delay_ns: int) -> Generator[Event, Any, None]:
        yield self._env.timeout(delay_ns)
        heappop(self._due)
        self._num_expected -= 1
        self._receive(arrival)

    def _receive(self, arrival: Arrival) -> None:
        self._intake.inbox.append(arrival)
        self._alert()

    def give_up_at(self, due_ns: int, request_id: str) -> None:
        """Let a client give up in time."""
        heappush(self._due, due_ns)
        self._env.process(self._give_up(request_id, due_ns - int(self._env.now)))

    def _give_up(self, request_id: str, delay_ns: int) -> Generator[Event, Any, None]:
        yield self._env.timeout(delay_ns)
        heappop(self._due)
        if self._intake.give_up(request_id):
            self._alert()

    def _alert(self) -> None:
        if self._wake is not None:
            self._wake.succeed()
            self._wake = None

    # Steps

    def _engine(self) -> Generator[Event, Any, None]:
        env, intake, depth = self._env, self._intake, self.core.config.depth
        while True:
            now = int(env.now)
            intake.drain(now)
            leapt = self._leap(now)
            if leapt > now:
                yield StepEnd(env, leapt - now)
                continue
            flights = self._flights
            planned = len(flights) < depth and self._plan(now)
            if planned and len(flights) < depth:
                # The pipe is not full yet: the next plan follows as soon as the host is free.
                yield StepEnd(env, self._host_free_ns - now)
            elif flights:
                due = max(flights[0].end_ns, self._host_free_ns)
                yield StepEnd(env, due - now)
                self._commit(flights.popleft(), due)
            elif self._num_expected:
                self._wake = env.event()
                yield self._wake
                yield StepEnd(env, 0)  # let everyone who comes at this nanosecond come first
            elif not intake.inbox:
                return

    def _plan(self, now_ns: int) -> bool:
        """Plan a step and send it on its way; False if there is nothing to plan."""
        core = self.core
        plan = core.plan_step(now_ns)
        if plan is None:
            return False
        if self._journal:
            self._journal.planned(plan)
        result, cost = self._executor.execute(plan)
        check_stall(core, plan)
        host_end = now_ns + cost.host_ns
        start = max(host_end, self._device_free_ns)
        end = start + cost.device_ns
        self._host_free_ns = host_end
        self._device_free_ns = end
        self._flights.append(Flight(plan, result, cost, start, end))
        if self._on_progress is not None and not plan.step & 1023:
            self._on_progress(now_ns, self._intake.num_ended)
        return True

    def _commit(self, flight: Flight, now_ns: int) -> None:
        plan, result, books = flight.plan, flight.result, self._books
        events = self.core.commit_step(plan, result, now_ns)
        if self._journal:
            self._journal.committed(plan, result, events, now_ns)
        books.gaps(events.gaps)
        books.step(flight, events)
        for sequence in events.finished:
            self._intake.ended(sequence.record, now_ns)

    def _leap(self, now_ns: int) -> int:
        """Carry out the steps in which nothing can be decided; returns the time at which something may be."""
        stretch = self._stretch
        if stretch is None or not (steps := stretch.num_steps(self._flights)):
            return now_ns
        horizon = self._due[0] if self._due else None
        end = stretch.run(now_ns, steps, horizon, self._flights, self._device_free_ns)
        if end.flights:
            self._flights = deque(end.flights)
        self._host_free_ns, self._device_free_ns = end.host_free_ns, end.device_free_ns
        if self._on_progress is not None:
            self._on_progress(end.now_ns, self._intake.num_ended)
        return end.now_ns
