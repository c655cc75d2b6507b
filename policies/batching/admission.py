"""How many tokens a step has for a sequence that waits."""

from __future__ import annotations

from ..core.builder import StepBuilder
from ..core.records import Blocked


def tokens_for_waiting(
    step: StepBuilder, wanted: int, num_drafts: int = 0, *, is_prefill: bool = True
) -> int | Blocked:
    """Of `wanted` tokens (`num_drafts` of them drafts) those that the step can hold, or what keeps them all out.

    Without chunked prefill it is all or nothing. Who goes on with decoding is no matter of the chunk size.
    """
    whole = not step.config.enable_chunked_prefill
    if step.request_limit is not None:
        wanted = min(wanted, step.request_limit)
    if step.budget <= 0 or (whole and wanted > step.budget):
        return Blocked.BUDGET
    tokens = min(wanted, step.budget)
    if step.prefill_budget is None or not is_prefill:
        return tokens
    room = step.prefill_budget + num_drafts
    if step.prefill_budget <= 0 or (whole and tokens > room):
        return Blocked.CHUNK
    return min(tokens, room)
