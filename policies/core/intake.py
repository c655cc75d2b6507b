"""Requests on their way into a core and out of it: what every driver does with them, whatever its clock.

At each step boundary a driver drains the inbox into the core, which fixes the order of arrivals at equal times. What
is to come later (the next turn of a session, a client that gives up) it notes in a calendar of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol

from .bookkeeping import Journal, Recorder
from .engine import EngineCore
from .frontend import Frontend
from .records import EventKind, EventRecord, RequestRecord, Status, record_of
from .request import Arrival, Output, Request
from .workload import Impatient, Workload


class Listener(Protocol):
    """Whoever must know of a request before the core does: the executor."""

    def expect(self, request: Request, output: Output) -> None:
        """Learn of a request and what it will generate."""
        ...

    def forget(self, request_id: str) -> None:
        """The request ended."""
        ...


class Calendar(Protocol):
    """Where a driver notes what is to happen later, in its own kind of time."""

    def arrive_at(self, due_ns: int, arrival: Arrival) -> None:
        """Then the arrival joins the inbox."""
        ...

    def give_up_at(self, due_ns: int, request_id: str) -> None:
        """Then `Intake.give_up` is called."""
        ...


class Intake:
    """The requests of one core: from the workload to the inbox, into the core, and to the recorder when they end."""

    def __init__(
        self,
        core: EngineCore,
        executor: Listener,
        workload: Workload,
        recorder: Recorder,
        calendar: Calendar,
        frontend: Frontend,
        warmup_ns: int = 0,
        journal: Journal | None = None,
    ) -> None:
        self.inbox: deque[Arrival] = deque()
        """What has arrived since the last boundary."""
        self.num_ended = 0
        self._core = core
        self._executor = executor
        self._workload = workload
        self._recorder = recorder
        self._calendar = calendar
        self._frontend = frontend
        self._warmup_ns = warmup_ns
        self._journal = journal
        self._given_up: list[str] = []  # requests to abort at the next boundary

    def give_up(self, request_id: str) -> bool:
        """A client gives up: its request is aborted at the next boundary. False if it has ended already."""
        if request_id not in self._core.sequences:
            return False
        self._given_up.append(request_id)
        return True

    def drain(self, now_ns: int) -> None:
        """Hand the inbox to the core: this fixes the order of arrivals at equal times."""
        if self._given_up:
            self._abort(now_ns)
        while self.inbox:
            self._admit(self.inbox.popleft(), now_ns)

    def ended(self, record: RequestRecord, now_ns: int) -> None:
        """A request has ended in the core: write it down, and send what its end sets off."""
        self._leave(record)
        egress, workload = self._frontend.egress_ns, self._workload
        if record.status is Status.ABORTED and isinstance(workload, Impatient):
            self._follow(workload.on_give_up(record.request_id, now_ns), now_ns)
        else:
            self._follow(workload.on_finish(record.request_id, now_ns + egress), now_ns)

    def break_off(self, now_ns: int) -> None:
        """End whatever the core still holds, unfinished; nothing follows from it."""
        for request_id in list(self._core.sequences):
            record = self._aborted(request_id, now_ns, "interrupted")
            assert record is not None, f"{request_id} ended by the end of another"
            record.status = Status.UNFINISHED
            self._leave(record)

    def _admit(self, arrival: Arrival, now_ns: int) -> None:
        ingress, request = self._frontend.ingress_ns, arrival.request
        if ingress:
            request = replace(request, arrival_ns=request.arrival_ns + ingress)
            arrival = replace(arrival, request=request)
        if self._journal:
            self._journal.added(arrival, now_ns)
        if arrival.refusal is not None:
            record, reason = replace(record_of(request), status=Status.REFUSED), arrival.refusal
        else:
            self._executor.expect(request, arrival.output)
            record, reason = self._core.add_request(request, now_ns), ""
        record.intended_ns = record.sent_ns = request.arrival_ns - ingress
        if record.status is Status.REFUSED:
            reason = reason or self._core.refusal(request) or ""
            self._note(EventKind.REFUSE, request.id, now_ns, reason)
            self.ended(record, now_ns)
            return
        if record.sent_ns < self._warmup_ns:
            self._core.sequences[request.id].is_measured = False
        if arrival.patience_ns is not None:
            # The engine learns of it as late as it learns of a request.
            due = arrival.time_ns + arrival.patience_ns + ingress
            self._calendar.give_up_at(max(due, now_ns), request.id)

    def _abort(self, now_ns: int) -> None:
        """Abort the requests whose clients gave up, unless they have ended at this very boundary."""
        given_up, self._given_up = self._given_up, []
        for request_id in given_up:
            record = self._aborted(request_id, now_ns, "timeout")
            if record is not None:
                self.ended(record, now_ns)

    def _aborted(self, request_id: str, now_ns: int, reason: str) -> RequestRecord | None:
        record = self._core.abort(request_id, now_ns)
        if record is not None:
            if self._journal:
                self._journal.aborted(request_id, now_ns)
            self._note(EventKind.ABORT, request_id, now_ns, reason)
        return record

    def _note(self, kind: EventKind, request_id: str, now_ns: int, reason: str) -> None:
        self._recorder.on_event(EventRecord(self._core.num_steps, now_ns, kind, request_id, None, 0, reason))

    def _leave(self, record: RequestRecord) -> None:
        egress = self._frontend.egress_ns
        if egress and record.first_token_ns is not None and record.last_token_ns is not None:
            record.first_token_ns += egress
            record.last_token_ns += egress
        self.num_ended += 1
        self._executor.forget(record.request_id)
        self._recorder.on_request(record)

    def _follow(self, arrivals: Iterable[Arrival], now_ns: int) -> None:
        """Send what the end of a request set off."""
        for arrival in arrivals:
            due = arrival.time_ns + self._frontend.ingress_ns
            if due > now_ns:
                self._calendar.arrive_at(due, arrival)
            else:
                self.inbox.append(arrival)
