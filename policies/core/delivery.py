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
        if plan.aborted:
            events.finished = [*plan.aborted, *events.finished]
        return events

    def _learn(self, tokens: Mapping[str, list[int]]) -> None:
        """Append literal output tokens."""
        sequences = self._core.sequences
        for request_id, new in tokens.items():
            if request_id in sequences:
                sequences[request_id].stream.push(new)

    def _finish(self, plan: StepPlan, result: StepResult, events: StepEvents) -> list[Sequence]:
        """Deliver what a plan scheduled one by one, and end what is done, in order of admission."""
        core, stopped = self._core, frozenset(result.stopped)
        ended, gaps = [], list(events.gaps)
        for sequence, row, is_due in self._work(plan, stopped):
            if sequence.state is State.ENDED:
                continue
            if is_due:
                events.num_accepted += self._deliver(sequence, row, result, gaps)
            if sequence.id in stopped or (not sequence.in_batch and sequence.num_tokens >= sequence.end):
                core.end(sequence, Status.FINISHED)
                ended.append(sequence)
            elif is_due:
                self._go_on(sequence, row)
        events.gaps = gaps
        return ended

    def _work(self, plan: StepPlan, stopped: frozenset[str]) -> list[tuple[Sequence, Row | None, bool]]:
        """Whoever gets a token by itself (True), and members of the batch that stop with theirs (False)."""
        work: list[tuple[Sequence, Row | None, bool]] = [(row.sequence, row, True) for row in plan.rows if row.samples]
        if plan.detached:
            work += [(sequence, None, True) for sequence in plan.detached]
        if stopped:
            due = {sequence.id for sequence, _, _ in work}
            others = [self._core.sequences.get(request_id) for request_id in stopped - due]
            work += [(sequence, None, False) for sequence in others if sequence is not None]
        if len(work) > 1:
            work.sort(key=lambda item: item[0].admission)
        return work

    def _deliver(self, sequence: Sequence, row: Row | None, result: StepResult, gaps: list[Gap]) -> int:
        """A token for a sequence that was scheduled by itself; returns how many drafts were accepted with it."""
        core = self._core
        accepted = self._verify(sequence, row, result) if row and row.num_drafts else 0
        sequence.in_flight -= 1
        self._stamp(sequence, gaps)
        if not sequence.in_batch:
            sequence.num_tokens += 1 + accepted
            core.kv_cache.delivered(sequence, is_late=core.config.depth > 1 or bool(row and row.num_drafts))
        return accepted

    def _go_on(self, sequence: Sequence, row: Row | None) -> None:
        """What follows a token that was not the last."""
        core = self._core
        if row is not None and row.is_prefill and sequence.state is State.RUNNING:
            core.kv_cache.prefilled(sequence, row.num_computed + row.num_tokens)
        if not sequence.in_batch and sequence.state is State.RUNNING:
            sequence.drafts = core.config.num_speculative_tokens

    def _verify(self, sequence: Sequence, row: Row, result: StepResult) -> int:
        """Roll back the drafts that were not accepted; returns how many were."""
        left = sequence.end - sequence.num_tokens - 1
        accepted = min((result.accepted or {}).get(sequence.id, 0), row.num_drafts, left)
        sequence.num_verified += 1
        sequence.computed -= row.num_drafts - accepted
        return accepted

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
