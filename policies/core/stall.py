"""Whether an engine can go on at all."""

from __future__ import annotations

from .engine import EngineCore
from .plan import StepPlan


class StallError(RuntimeError):
    """Requests wait, nothing runs and nothing can be admitted."""


def check_stall(core: EngineCore, plan: StepPlan) -> None:
    """Raise StallError where neither the core's newest plan nor one before it in flight changes anything."""
    if plan.rows or plan.num_decodes:
        return
    if not any(p.rows or p.num_decodes or p.preempted or p.aborted for p in core.in_flight):
        waiting, free = core.num_waiting, core.num_free_blocks
        raise StallError(f"step {plan.step}: {waiting} requests wait, nothing runs, {free} blocks are free")
