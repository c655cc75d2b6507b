"""A plan applied to its core: sequences advance by what they are given; beginnings, ends and the stock are noted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .plan import Admission, Row, StepPlan
from .records import Status
from .sequence import Sequence
from .wait_clock import WaitClock

if TYPE_CHECKING:
    from .engine import EngineCore


def apply_rows(core: EngineCore, plan: StepPlan, rows: dict[Sequence, Row]) -> None:
    """Advance the sequences scheduled one by one; those with a steady decode ahead join the batch."""
    ordered = list(rows.values())
    if len(ordered) > 1:
        ordered.sort(key=lambda row: row.sequence.admission)
    plan.rows, joined = ordered, []
    speculates = core.config.num_speculative_tokens > 0
    for row in ordered:
        sequence = row.sequence
        sequence.computed += row.num_tokens
        known = sequence.num_tokens + sequence.in_flight
        sequence.is_prefilling = sequence.computed < known
        row.samples = sequence.computed - row.num_drafts >= known
        plan.num_drafts += row.num_drafts
        if row.is_prefill:
            plan.num_prefill_tokens += row.num_tokens - row.num_drafts
            core.num_prefilled += row.num_tokens - row.num_drafts
            sequence.record.num_chunks += 1
        if row.samples:
            sequence.in_flight += 1
            if not speculates and known + 1 < sequence.end:
                core.running_list.join_batch(sequence)
                joined.append(sequence)
    if joined:
        plan.joined = joined


def note_admissions(admitted: list[Admission], waits: WaitClock, now_ns: int) -> None:
    """Write down when those that are admitted for the first time were, and what they waited for and found cached."""
    for sequence, num_cached_tokens, resumed in admitted:
        if not resumed:
            record = sequence.record
            record.admitted_ns = record.first_scheduled_ns = now_ns
            record.cached_tokens = num_cached_tokens
            waits.admitted(sequence, now_ns)


def note_end(sequence: Sequence, status: Status) -> None:
    """Write down how a sequence ended."""
    record = sequence.record
    record.status = status
    record.output_tokens = sequence.num_tokens - sequence.prompt_tokens
    if record.output_tokens:
        record.last_token_ns = sequence.last_token_ns


def take_stock(core: EngineCore, plan: StepPlan) -> None:
    """Note in a plan how many run and wait, how many blocks are free, and how many tokens are held."""
    plan.num_running = len(core.running)
    plan.num_waiting = len(core.waiting)
    plan.num_free_blocks = core.kv_cache.pool.num_free
    plan.num_cached_blocks = core.kv_cache.index.num_evictable
    plan.shared_tokens = core.kv_cache.num_shared_tokens
    plan.kv_tokens = core.batch.context_tokens
    if core.loose:
        plan.kv_tokens += sum(sequence.computed for sequence in core.loose.values())
