"""The commit of a step: tokens out, rejected drafts rolled back, what is done ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from .plan import Gap, Row, StepEvents, StepPlan, StepResult
from .records import Status
from .sequence import Sequence, State

if TYPE_CHECKING:
    from .engine import EngineCore


class Delivery:
    """Delivers the tokens of one core's steps."""

    def __init__(self, core: EngineCore) -> None:
        self._core = core

    def commit(self, plan: StepPlan, result: StepResult) -> StepEvents:
        """Deliver the tokens of the oldest plan in flight, which the core has taken out of `in_flight`."""
        core, events = self._core, StepEvents()
        if result.tokens is not None:
            self._learn(result.tokens)
        if plan.batch_number is not None:
            events.gaps = core.batch.commit(core.now_ns, plan.num_decodes - len(plan.detached))
        if plan.rows or plan.detached or result.stopped:
            events.finished = self._finish(plan, result, events)
        return events

    def _learn(self, tokens: Mapping[str, list[int]]) -> None:
        """Append literal output tokens."""
        sequences = self._core.sequences
        for request_id, new in tokens.items():
            if request_id in sequences:
                sequences[request_id].stream.push(new)

    def _finish(self, plan: StepPlan, result: StepResult, events: StepEvents) -> list[Sequence]:
        """Deliver what a plan scheduled one by one; end what is done, in order of admission."""
        ended = self._deliver(plan, result, events) if plan.rows or plan.detached else []
        for request_id in result.stopped:
            sequence = self._core.sequences.get(request_id)
            if sequence is not None and sequence not in ended:
                ended.append(sequence)
        if len(ended) > 1:
            ended.sort(key=lambda sequence: sequence.admission)
        for sequence in ended:
            self._core.end(sequence, Status.FINISHED)
        return ended

    def _deliver(self, plan: StepPlan, result: StepResult, events: StepEvents) -> list[Sequence]:
        """Tokens of the sequences that the plan scheduled one by one; returns those that end with theirs by length."""
        work: list[tuple[Sequence, Row | None]] = [(row.sequence, row) for row in plan.rows if row.samples]
        if plan.detached:
            work += [(sequence, None) for sequence in plan.detached]
            work.sort(key=lambda item: item[0].admission)
        ended, gaps = [], list(events.gaps)
        for sequence, row in work:
            if sequence.state is State.ENDED:
                continue
            accepted = self._verify(sequence, row, result) if row and row.num_drafts else 0
            events.num_accepted += accepted
            sequence.in_flight -= 1
            self._stamp(sequence, gaps)
            if sequence.in_batch:
                continue
            sequence.num_tokens += 1 + accepted
            self._enter(sequence, row)
            if sequence.num_tokens >= sequence.end:
                ended.append(sequence)
            elif sequence.state is State.RUNNING:
                sequence.drafts = self._core.config.num_speculative_tokens
        events.gaps = gaps
        return ended

    def _verify(self, sequence: Sequence, row: Row, result: StepResult) -> int:
        """Roll back the drafts that were not accepted; returns how many were."""
        left = sequence.end - sequence.num_tokens - 1
        accepted = min((result.accepted or {}).get(sequence.id, 0), row.num_drafts, left)
        sequence.num_verified += 1
        sequence.computed -= row.num_drafts - accepted
        return accepted

    def _enter(self, sequence: Sequence, row: Row | None) -> None:
        """Enter blocks that delivered tokens made known: after verification, and behind asynchronous plans."""
        if sequence.state is State.RUNNING and (self._core.config.depth > 1 or (row and row.num_drafts)):
            self._core.kv_cache.enter(sequence, sequence.computed - sequence.in_flight)

    def _stamp(self, sequence: Sequence, gaps: list[Gap]) -> None:
        """Note the time of a sequence's new output chunk."""
        record, now_ns = sequence.record, self._core.now_ns
        if record.first_token_ns is None:
            record.first_token_ns = now_ns
        else:
            gap = now_ns - sequence.last_token_ns
            if sequence.is_measured:
                gaps.append((gap, 1))
            if record.max_gap_ns is None or gap > record.max_gap_ns:
                record.max_gap_ns = gap
        sequence.last_token_ns = now_ns
