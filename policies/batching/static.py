"""Request-level batching, the old way: a batch is admitted, runs until its last request ends, then comes the next."""

from __future__ import annotations

from ..core.builder import StepBuilder
from ..core.records import Blocked
from ..registry import register
from .running import serve_running


@register("batching", "static")
class Static:
    """Nobody joins a batch under way; what continuous batching is measured against."""

    def compose(self, step: StepBuilder) -> None:
        """A new batch when the old one is done; else a step of the old one."""
        if step.num_running:
            serve_running(step)
            step.block(Blocked.SLOTS)
            return
        while (sequence := step.next_waiting()) is not None:
            match = step.match(sequence)
            room = step.budget if step.prefill_budget is None else min(step.budget, step.prefill_budget)
            num_tokens = min(sequence.num_tokens - match.num_blocks * step.config.block_size, room)
            full = step.num_running >= step.config.max_num_seqs
            blocked = Blocked.SLOTS if full else Blocked.BUDGET if num_tokens <= 0 else None
            blocked = blocked or step.admit(sequence, match, num_tokens)
            if blocked is not None:
                step.block(blocked)
                return
