"""The SimPy driver: arrivals come when they come, the engine steps, results are committed, everything is recorded.

With one plan in flight a step costs host and device time after one another. With two (asynchronous scheduling) step
N+1 is planned while N runs; N+2 is planned when N ends, and a step costs the larger of the two:

    host     plan 1 | plan 2 |   commit 1, plan 3   | commit 2, plan 4
    device          [   step 1   ][   step 2   ][   step 3   ]

An arrival at the very nanosecond of a step boundary is seen at that boundary: steps end after all other events.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from dataclasses import replace
from heapq import heappop, heappush
from typing import Any

import simpy
from simpy.events import Event

from ..policies.core.bookkeeping import Bookkeeper, Flight, Journal, Recorder
from ..policies.core.engine import EngineCore
from ..policies.core.frontend import DIRECT, Frontend
from ..policies.core.plan import StepPlan
from ..policies.core.records import EventKind, EventRecord, RequestRecord, Status, record_of
from ..policies.core.request import Arrival
from ..policies.core.workload import Impatient, Workload
from .executor import SimExecutor
from .step_end import StepEnd
from .stretch import Stretch


class StallError(RuntimeError):
    """Requests wait, nothing runs and nothing can be admitted."""


class SimDriver:
    """One engine under one workload in virtual time."""

    def __init__(
        self,
        core: EngineCore,
        executor: SimExecutor,
        workload: Workload,
        recorder: Recorder,
        *,
        frontend: Frontend = DIRECT,
        warmup_ns: int = 0,
        journal: Journal | None = None,
        leaps: bool = True,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.core = core
        self.num_ended = 0
        self._executor = executor
        self._workload = workload
        self._recorder = recorder
        self._frontend = frontend
        self._warmup_ns = warmup_ns
        self._journal = journal
        self._on_progress = on_progress
        self._env = simpy.Environment(initial_time=0)
        self._inbox: deque[Arrival] = deque()
        self._given_up: list[str] = []  # requests to abort at the next boundary
        self._num_expected = 0  # arrivals under way, and the source while it is open
        self._wake: Event | None = None
        self._due: list[int] = []  # heap: when the requests under way will reach the inbox
        self._books = Bookkeeper(recorder)
        self._stretch = Stretch(core, executor, recorder, self._books)
        self._leaps = leaps and journal is None  # a journal holds every plan
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

    def _later(self, arrival: Arrival, delay_ns: int) -> Generator[Event, Any, None]:
        yield self._env.timeout(delay_ns)
        heappop(self._due)
        self._num_expected -= 1
        self._receive(arrival)

    def _receive(self, arrival: Arrival) -> None:
        self._inbox.append(arrival)
        self._alert()

    def _give_up(self, request_id: str, delay_ns: int) -> Generator[Event, Any, None]:
        yield self._env.timeout(delay_ns)
        heappop(self._due)
        if request_id in self.core.sequences:
            self._given_up.append(request_id)
            self._alert()

    def _alert(self) -> None:
        if self._wake is not None:
            self._wake.succeed()
            self._wake = None

    def _drain(self, now_ns: int) -> None:
        """Hand the inbox to the core: this fixes the order of arrivals at equal times."""
        if self._given_up:
            self._abort(now_ns)
        ingress = self._frontend.ingress_ns
        while self._inbox:
            arrival = self._inbox.popleft()
            request = arrival.request
            if ingress:
                request = replace(request, arrival_ns=request.arrival_ns + ingress)
                arrival = replace(arrival, request=request)
            if self._journal:
                self._journal.added(arrival, now_ns)
            if arrival.refusal is not None:
                record, reason = replace(record_of(request), status=Status.REFUSED), arrival.refusal
            else:
                self._executor.expect(request.id, request.max_tokens, arrival.output)
                record, reason = self.core.add_request(request, now_ns), ""
            record.intended_ns = record.sent_ns = request.arrival_ns - ingress
            if record.status is Status.REFUSED:
                reason = reason or self.core.refusal(request) or ""
                self._recorder.on_event(
                    EventRecord(self.core.num_steps, now_ns, EventKind.REFUSE, request.id, None, 0, reason)
                )
                self._ended(record, now_ns)
                continue
            if record.sent_ns < self._warmup_ns:
                self.core.sequences[request.id].is_measured = False
            if arrival.patience_ns is not None:
                self._await_answer(arrival, now_ns)

    def _await_answer(self, arrival: Arrival, now_ns: int) -> None:
        """Let the client give up in time, which the engine learns as late as it learns of a request."""
        assert arrival.patience_ns is not None
        due = max(arrival.time_ns + arrival.patience_ns + self._frontend.ingress_ns, now_ns)
        heappush(self._due, due)
        self._env.process(self._give_up(arrival.request.id, due - now_ns))

    def _abort(self, now_ns: int) -> None:
        """Abort the requests whose clients gave up, unless they have ended at this very boundary."""
        given_up, self._given_up = self._given_up, []
        for request_id in given_up:
            record = self.core.abort(request_id, now_ns)
            if record is None:
                continue
            if self._journal:
                self._journal.aborted(request_id, now_ns)
            event = EventRecord(self.core.num_steps, now_ns, EventKind.ABORT, request_id, None, 0, "timeout")
            self._recorder.on_event(event)
            self._ended(record, now_ns)

    def _ended(self, record: RequestRecord, now_ns: int) -> None:
        egress = self._frontend.egress_ns
        if egress and record.first_token_ns is not None and record.last_token_ns is not None:
            record.first_token_ns += egress
            record.last_token_ns += egress
        self.num_ended += 1
        self._executor.forget(record.request_id)
        self._recorder.on_request(record)
        workload = self._workload
        if record.status is Status.ABORTED and isinstance(workload, Impatient):
            self._follow(workload.on_give_up(record.request_id, now_ns), now_ns)
        else:
            self._follow(workload.on_finish(record.request_id, now_ns + egress), now_ns)

    def _follow(self, arrivals: Iterable[Arrival], now_ns: int) -> None:
        """Send what the end of a request set off."""
        for arrival in arrivals:
            delay = arrival.time_ns + self._frontend.ingress_ns - now_ns
            if delay > 0:
                self._num_expected += 1
                heappush(self._due, now_ns + delay)
                self._env.process(self._later(arrival, delay))
            else:
                self._inbox.append(arrival)

    # Steps

    def _engine(self) -> Generator[Event, Any, None]:
        env, core = self._env, self.core
        depth = core.config.depth
        while True:
            now = int(env.now)
            self._drain(now)
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
            elif not self._inbox:
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
        if not plan.rows and not plan.num_decodes:
            self._check_stall(plan)
        host_end = now_ns + cost.host_ns
        start = max(host_end, self._device_free_ns)
        end = start + cost.device_ns
        self._host_free_ns = host_end
        self._device_free_ns = end
        self._flights.append(Flight(plan, result, cost, start, end))
        if self._on_progress is not None and not plan.step & 1023:
            self._on_progress(now_ns, self.num_ended)
        return True

    def _check_stall(self, plan: StepPlan) -> None:
        """Raise StallError where neither a plan nor one that is in flight changes anything."""
        plans = (plan, *(flight.plan for flight in self._flights))
        if not any(p.rows or p.num_decodes or p.preempted or p.aborted for p in plans):
            waiting, free = self.core.num_waiting, self.core.num_free_blocks
            raise StallError(f"step {plan.step}: {waiting} requests wait, nothing runs, {free} blocks are free")

    def _commit(self, flight: Flight, now_ns: int) -> None:
        plan, result, books = flight.plan, flight.result, self._books
        events = self.core.commit_step(plan, result, now_ns)
        if self._journal:
            self._journal.committed(plan, result, events, now_ns)
        books.gaps(events.gaps)
        books.step(flight, events)
        for sequence in events.finished:
            self._ended(sequence.record, now_ns)

    def _leap(self, now_ns: int) -> int:
        """Carry out the steps in which nothing can be decided; returns the time at which something may be."""
        steps = self._stretch.num_steps(self._flights) if self._leaps else 0
        if not steps:
            return now_ns
        horizon = self._due[0] if self._due else None
        end = self._stretch.run(now_ns, steps, horizon, self._flights, self._device_free_ns)
        if end.flights:
            self._flights = deque(end.flights)
        self._host_free_ns, self._device_free_ns = end.host_free_ns, end.device_free_ns
        if self._on_progress is not None:
            self._on_progress(end.now_ns, self.num_ended)
        return end.now_ns
