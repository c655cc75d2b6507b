"""vLLM's step: no phases, running sequences first, then admissions, under one token budget."""

from __future__ import annotations

from ..core.builder import StepBuilder
from ..core.records import Blocked
from ..core.sequence import Sequence
from ..registry import register
from .admission import tokens_for_waiting
from .running import serve_running


@register("batching", "unified")
class Unified:
    """Running requests first, then the queue, prefill chunks and decodes under one budget; a step that had to preempt
    admits nobody.
    """

    decodes_alone = True

    def compose(self, step: StepBuilder) -> None:
        """Running sequences in order of admission, then the waiting queue until something blocks it."""
        step.order_waiting()
        serve_running(step)
        if step.preempted:
            step.block(Blocked.MEMORY)
        elif step.next_waiting() is not None:
            ran = step.plan.num_decodes > 0 or bool(step.rows)
            self._admit(step, ran, any(row.is_prefill for row in step.rows.values()))

    def _admit(self, step: StepBuilder, ran: bool, prefilling: bool) -> None:
        while (sequence := step.next_waiting()) is not None:
            blocked = self._admit_one(step, sequence, ran, prefilling)
            if blocked is not None:
                step.block(blocked)
                return

    def _admit_one(self, step: StepBuilder, sequence: Sequence, ran: bool, prefilling: bool) -> Blocked | None:
        config = step.config
        if step.budget <= 0:
            return Blocked.BUDGET
        if step.num_running >= config.max_num_seqs:
            return Blocked.SLOTS
        match = step.match(sequence)
        ready = step.num_ready(sequence, match)
        num_tokens, num_drafts = sequence.num_tokens - ready, 0
        if config.num_speculative_tokens and num_tokens == 1 and not prefilling and (ran or ready):
            # One token to go: vLLM pads it to the shape of a decode with placeholder drafts.
            num_drafts = config.num_speculative_tokens
            num_tokens += num_drafts
            limit = step.request_limit
            assert limit is None or num_tokens <= limit, f"{limit} tokens a request hold no decode with its drafts"
            if num_tokens > step.budget:
                return Blocked.BUDGET
        given = tokens_for_waiting(step, num_tokens, num_drafts, is_prefill=not sequence.resumes_decoding)
        if isinstance(given, Blocked):
            return given
        return step.admit(sequence, match, given, num_drafts)
