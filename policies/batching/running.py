"""The first half of a step: tokens for the sequences that run, preempting where memory is short."""

from __future__ import annotations

from ..core.builder import StepBuilder
from ..core.sequence import Sequence


def serve_running(step: StepBuilder) -> None:
    """Give each running sequence what it wants, in order of admission, until the budget is used up.

    As long as the budget holds all of it, and it is the last that give way when memory is short, only sequences that
    something happens to are touched; otherwise the decode batch dissolves and everyone is walked.
    """
    preempts = getattr(step.core.policies.preemption, "takes_last", False)
    loose = step.loose()
    wants = _wants(step, loose) if loose else ()
    if wants is None or not step.decode_all(wants, preempts=preempts):
        step.dissolve()
        _walk(step)


def _wants(step: StepBuilder, loose: list[Sequence]) -> list[tuple[Sequence, int]] | None:
    """What the sequences outside the batch are given if the whole batch is served; None where order decides."""
    left = step.budget - step.core.batch.size
    prefill_left = step.prefill_budget
    wants = []
    for sequence in loose:
        wanted = step.wanted(sequence)
        if step.request_limit is not None:
            wanted = min(wanted, step.request_limit)
        if wanted > left and sequence.admission < step.core.running_list.last_decode_admission():
            return None
        if sequence.is_prefilling and prefill_left is not None:
            wanted = min(wanted, prefill_left)
            prefill_left -= wanted
        given = min(wanted, left)
        left -= given
        if given > 0:
            wants.append((sequence, given))
    return wants


def _walk(step: StepBuilder) -> None:
    running = step.running()
    preemption = step.core.policies.preemption
    at = 0
    while at < len(running) and step.budget > 0:
        sequence = running[at]
        given = _given(step, sequence)
        if given <= 0:
            at += 1
            continue
        while not step.extend(sequence, given):
            victim = preemption.victim(running)
            running.remove(victim)
            if step.is_scheduled(victim):
                at -= 1
            step.preempt(victim, sequence)
            if victim is sequence:
                break
        else:
            at += 1


def _given(step: StepBuilder, sequence: Sequence) -> int:
    given = step.wanted(sequence)
    if step.request_limit is not None:
        given = min(given, step.request_limit)
    if sequence.is_prefilling and step.prefill_budget is not None:
        given = min(given, step.prefill_budget)
    return min(given, step.budget)
