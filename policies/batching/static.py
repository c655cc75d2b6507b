"""Request-level batching, the old way: a batch is admitted, runs until its last request ends, then comes the next."""

from __future__ import annotations

from ..core.builder import StepBuilder
from ..core.records import Blocked
from ..core.sequence import Sequence
from ..registry import register
from .admission import tokens_for_waiting
from .running import serve_running


@register("batching", "static")
class Static:
    """Nobody joins a batch under way; what continuous batching is measured against."""

    decodes_alone = True

    def compose(self, step: StepBuilder) -> None:
        """A new batch when the old one is done; else a step of the old one."""
        step.order_waiting()
        under_way = step.num_running > 0
        if under_way:
            serve_running(step)
        while (sequence := step.next_waiting()) is not None:
            blocked = Blocked.SLOTS if under_way else self._admit(step, sequence)
            if blocked is not None:
                step.block(blocked)
                return

    def _admit(self, step: StepBuilder, sequence: Sequence) -> Blocked | None:
        if step.num_running >= step.config.max_num_seqs:
            return Blocked.SLOTS
        match = step.match(sequence)
        wanted = sequence.num_tokens - step.num_ready(sequence, match)
        given = tokens_for_waiting(step, wanted, is_prefill=not sequence.resumes_decoding)
        return given if isinstance(given, Blocked) else step.admit(sequence, match, given)
