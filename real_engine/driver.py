"""The wall-clock driver: requests arrive when they arrive, steps take as long as they take, everything is recorded.

With two plans in flight (asynchronous scheduling) step N+1 is planned and launched before N's tokens reach the host:

    host     plan, launch 1 | plan, launch 2 | wait 1, commit 1 | plan, launch 3 | wait 2, commit 2
    device                  [       step 1        ][       step 2       ][       step 3       ]

The rules are those of `sim.driver`, which runs in virtual time: the inbox is drained at step boundaries, and steps are
committed in the order in which they were planned. The journal replays.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

from ..policies.core.bookkeeping import Bookkeeper, Flight, Journal, Recorder
from ..policies.core.engine import EngineCore
from ..policies.core.frontend import DIRECT, Frontend
from ..policies.core.intake import Intake
from ..policies.core.plan import StepPlan
from ..policies.core.stall import check_stall
from ..policies.core.workload import Workload
from .agenda import Agenda
from .contract import Executor, StepDone, Ticket

PROGRESS_NS = 100_000_000
"""How often progress is told."""


class Clock(Protocol):
    """A run's time, from 0 on."""

    def now_ns(self) -> int:
        """Now; never less than before."""
        ...

    def sleep_until(self, due_ns: int) -> None:
        """Return then, or earlier where `wake` was called."""
        ...

    def wake(self) -> None:
        """End a sleep. May be called from a signal handler or another thread."""
        ...


class UnderWay(NamedTuple):
    """A step on the device."""

    plan: StepPlan
    ticket: Ticket
    launched_ns: int


class WallClockDriver:
    """One engine under one workload in real time."""

    def __init__(
        self,
        core: EngineCore,
        executor: Executor,
        workload: Workload,
        recorder: Recorder,
        *,
        clock: Clock,
        frontend: Frontend = DIRECT,
        warmup_ns: int = 0,
        journal: Journal | None = None,
        on_progress: Callable[[int, int], None] | None = None,
        on_token: Callable[[str, int], None] | None = None,
    ) -> None:
        """`on_progress(now_ns, num_ended)` now and then; `on_token(request_id, token)` where outputs are sampled."""
        self.core = core
        self.interrupted = False
        """Whether the run was stopped before every request had ended."""
        self._executor = executor
        self._clock = clock
        self._journal = journal
        self._on_progress = on_progress
        self._on_token = on_token
        self._agenda = Agenda(workload.arrivals(), frontend.ingress_ns)
        self._intake = Intake(core, executor, workload, recorder, self._agenda, frontend, warmup_ns, journal)
        self._books = Bookkeeper(recorder)
        self._under_way: deque[UnderWay] = deque()
        self._device_free_ns = 0
        self._told_ns = 0
        self._stopping = False

    def run(self) -> int:
        """Run until every request has ended, or `stop`; returns the time of the end. Raises StepFailed, StallError.

        A KeyboardInterrupt that comes while it waits or sleeps is a `stop`; another, or one while the core works, is
        raised, and the core is not to be used any more.
        """
        while not self._stopping and self._turn():
            pass
        if self._stopping:
            self._break_off()
        return self._clock.now_ns()

    @property
    def was_stopped(self) -> bool:
        """Whether it was told to stop, even where nothing was left to do by then."""
        return self._stopping

    def stop(self) -> None:
        """Plan nothing more: commit the steps in flight, end all others unfinished. For signal handlers and threads."""
        self._stopping = True
        self._clock.wake()

    def _turn(self) -> bool:
        """From one step boundary to the next; False if nothing is left to do."""
        now_ns = self._receive()
        under_way, depth = self._under_way, self.core.config.depth
        if len(under_way) < depth and self._plan(now_ns) and len(under_way) < depth:
            return True  # the pipe is not full yet: the next plan follows at once
        if under_way:
            self._commit_oldest()
        elif self._agenda.num_arrivals:
            self._sleep()
        else:
            return bool(self._intake.inbox)
        return True

    def _receive(self) -> int:
        """Hand everything that has come to the core; returns the time of this boundary."""
        now_ns = self._clock.now_ns()
        self._agenda.deliver(now_ns, self._intake)
        self._intake.drain(now_ns)
        if self._on_progress is not None and now_ns - self._told_ns >= PROGRESS_NS:
            self._told_ns = now_ns
            self._on_progress(now_ns, self._intake.num_ended)
        return now_ns

    def _plan(self, now_ns: int) -> bool:
        """Plan a step and send it on its way; False if there is nothing to plan."""
        plan = self.core.plan_step(now_ns)
        if plan is None:
            return False
        if self._journal:
            self._journal.planned(plan)
        check_stall(self.core, plan)
        ticket = self._executor.launch(plan)
        self._under_way.append(UnderWay(plan, ticket, self._clock.now_ns()))
        return True

    def _commit_oldest(self) -> None:
        """Wait for the oldest step in flight and deliver what it yields."""
        plan, ticket, launched_ns = self._under_way.popleft()
        result, cost, tokens = self._wait(ticket)
        now_ns = self._clock.now_ns()
        known = [item for item in tokens.items() if item[0] in self.core.sequences] if self._on_token else ()
        events = self.core.commit_step(plan, result, now_ns)
        if self._journal:
            self._journal.committed(plan, result, events, now_ns)
        # It began no earlier than it was launched and the device was free, and had ended by now.
        start_ns = max(0, min(max(launched_ns, self._device_free_ns), now_ns - cost.device_ns))
        self._device_free_ns = start_ns + cost.device_ns
        host_ns = launched_ns - plan.now_ns + self._clock.now_ns() - now_ns
        self._books.gaps(events.gaps)
        self._books.step(Flight(plan, result, cost._replace(host_ns=host_ns), start_ns, now_ns), events)
        for request_id, new in known:
            assert self._on_token is not None
            for token in new:
                self._on_token(request_id, token)
        for sequence in events.finished:
            self._intake.ended(sequence.record, now_ns)

    def _wait(self, ticket: Ticket) -> StepDone:
        try:
            return ticket.wait()
        except KeyboardInterrupt:
            self._interrupt()
            return ticket.wait()  # the device goes on meanwhile

    def _sleep(self) -> None:
        """Until somebody is due."""
        try:
            self._clock.sleep_until(self._agenda.next_ns)
        except KeyboardInterrupt:
            self._interrupt()

    def _interrupt(self) -> None:
        if self._stopping:
            raise KeyboardInterrupt
        self._stopping = True

    def _break_off(self) -> None:
        """Commit what is in flight and end the rest."""
        while self._under_way:
            self._commit_oldest()
        now_ns = self._receive()  # who has come meanwhile was sent, and is counted
        self.interrupted = bool(self.core.sequences or self._agenda.num_arrivals or self._intake.inbox)
        self._intake.break_off(now_ns)
