"""SGLang's way out when memory is short in decode: some requests go back to the queue until the others fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.builder import StepBuilder
from ..core.sequence import Sequence
from .new_token_ratio import RETRACT_STEPS

if TYPE_CHECKING:
    from .prefill_first import PrefillFirst


def make_room_for_decodes(step: StepBuilder, policy: PrefillFirst) -> bool:
    """Retract until those that stay can decode; True if any do. The last one is aborted where it does not fit."""
    step.dissolve()
    order = getattr(step.core.policies.preemption, "order", None)
    running = policy.running(step)
    if order is not None:
        running = order(running)
        step.core.running_list.put_last(running)
    while not _fits(step, running) and len(running) > 1:
        victim = step.core.policies.preemption.victim(running)
        running.remove(victim)
        retract(step, victim, len(running))
    if len(running) == 1 and not _fits(step, running):
        _give_up(step, running.pop())
    policy.ratio.after_retraction((s.num_tokens - s.prompt_tokens, s.end - s.prompt_tokens) for s in running)
    return bool(running)


def retract(step: StepBuilder, victim: Sequence, num_others: int) -> None:
    """Send a running sequence back; what it held stays in the tree, unlocked, until it is evicted."""
    step.preempt(victim, None)
    step.make_room(num_others * RETRACT_STEPS)


def _give_up(step: StepBuilder, sequence: Sequence) -> None:
    """End a running sequence with an error; as in a retraction, what it held does not enter the tree."""
    step.core.kv_cache.release(sequence)
    sequence.computed = 0
    step.abort(sequence)


def _fits(step: StepBuilder, running: list[Sequence]) -> bool:
    """Whether each of `running` that is due a further token can have it."""
    cache = step.core.kv_cache
    due = [sequence for sequence in running if step.wanted(sequence) > 0]
    needed = sum(cache.num_blocks_short(sequence, sequence.computed + 1) for sequence in due)
    step.make_room(needed * cache.block_size)
    return needed <= cache.pool.num_free
