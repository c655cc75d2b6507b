"""What a driver writes down of its steps: rows for steps and events, gaps between output chunks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from .estimator import StepCost
from .plan import Eviction, Gap, StepEvents, StepPlan, StepResult
from .records import EventKind, EventRecord, RequestRecord, StepKind, StepRecord
from .request import Arrival


class Recorder(Protocol):
    """Where a run's records go."""

    def on_step(self, record: StepRecord) -> None:
        """A step was committed."""

    def on_gap(self, gap_ns: int, count: int) -> None:
        """`count` measured requests got an output chunk `gap_ns` after the one before."""

    def on_request(self, record: RequestRecord) -> None:
        """A request ended."""

    def on_event(self, record: EventRecord) -> None:
        """Someone was preempted, evicted, swapped, refused or aborted."""


class Journal(Protocol):
    """Where the ordered log of core calls goes."""

    def added(self, arrival: Arrival, now_ns: int) -> None:
        """A request was given to the core."""

    def aborted(self, request_id: str, now_ns: int) -> None:
        """A request was aborted."""

    def planned(self, plan: StepPlan) -> None:
        """A step was planned."""

    def committed(self, plan: StepPlan, result: StepResult, events: StepEvents, now_ns: int) -> None:
        """A step was committed."""


class Flight(NamedTuple):
    """A planned step on its way."""

    plan: StepPlan
    result: StepResult
    cost: StepCost
    start_ns: int
    end_ns: int


class Bookkeeper:
    """Turns plans and commits into rows."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def gaps(self, gaps: Iterable[Gap]) -> None:
        """Write down a commit's gaps."""
        on_gap = self._recorder.on_gap
        for gap_ns, count in gaps:
            on_gap(gap_ns, count)

    def step(self, flight: Flight, events: StepEvents) -> None:
        """Write down a committed step and what happened in it."""
        plan = flight.plan
        if plan.preempted:
            for victim, by, num_blocks, reason in plan.preempted:
                kind = EventKind.PREEMPT
                whom = by.id if by is not None else None
                self._recorder.on_event(EventRecord(plan.step, plan.now_ns, kind, victim.id, whom, num_blocks, reason))
        for kind, sequence, by, num_blocks, reason in plan.swaps:
            whom = by.id if by is not None else None
            self._recorder.on_event(EventRecord(plan.step, plan.now_ns, kind, sequence.id, whom, num_blocks, reason))
        for sequence in plan.aborted:
            kind = EventKind.ABORT
            self._recorder.on_event(EventRecord(plan.step, plan.now_ns, kind, sequence.id, None, 0, "memory"))
        if plan.evictions:
            self.evictions(plan.step, plan.now_ns, plan.evictions)
        self._recorder.on_step(step_record(flight, len(events.finished), events.num_accepted))

    def evictions(self, step: int, now_ns: int, evictions: Iterable[Eviction]) -> None:
        """Write down who was evicted for whom."""
        on_event = self._recorder.on_event
        for owner, by, num_blocks, reason in evictions:
            on_event(EventRecord(step, now_ns, EventKind.EVICT, owner, by, num_blocks, reason))


def step_record(flight: Flight, num_finished: int, num_accepted: int) -> StepRecord:
    """The row of a step."""
    plan, cost = flight.plan, flight.cost
    decodes, context = plan.num_decodes, plan.decode_context_tokens
    for row in plan.rows:
        decodes += not row.is_prefill
        context += row.num_computed + row.num_tokens
    if plan.num_prefill_tokens:
        kind = StepKind.MIXED if decodes else StepKind.PREFILL
    else:
        kind = StepKind.DECODE if decodes else StepKind.EMPTY
    num_evicted = sum(eviction.num_blocks for eviction in plan.evictions) if plan.evictions else 0
    # By position, in order of the fields: a step's row is made for every step.
    # fmt: off
    return StepRecord(
        plan.step, flight.start_ns, cost.device_ns, kind, plan.num_prefill_tokens, decodes, context, plan.num_running,
        plan.num_waiting, plan.num_free_blocks, plan.num_cached_blocks, plan.kv_tokens,
        plan.refused_blocks, num_evicted, len(plan.preempted), num_finished, plan.num_drafts, num_accepted,
        cost.compute_ns, cost.memory_ns, cost.host_ns, cost.extrapolated,
    )
    # fmt: on
