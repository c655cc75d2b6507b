"""What two runs decided, out of their journals: the first step in which they differ, and the steps themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from ...calibrate.loop.recorded import RecordedStep
from ...policies.core.estimator import StepShape
from ...policies.core.journal import read_journal
from ...policies.core.plan import StepPlan
from ..recording import JOURNAL
from ..replaying import Replayed, replay

PARTS = ("decode batch", "chunks", "admitted", "preempted", "evicted", "aborted", "joined", "left", "counts", "swapped")
"""Of a plan's digest."""


def recorded_steps(result: Path) -> tuple[list[RecordedStep], Replayed]:
    """Every step of a run with what it held and how long the device took, and how the replay of its journal went.

    Steps that copied KV to the host or back are left out: a cost model prices those copies apart.
    """
    shapes: dict[int, StepShape] = {}

    def note(plan: StepPlan) -> None:
        if not plan.swaps:
            shapes[plan.step] = plan.shape()

    replayed = replay(result, on_plan=note)
    table = pq.read_table(result / "steps.parquet", columns=["step", "duration_s"])
    times = zip(table["step"].to_pylist(), table["duration_s"].to_pylist(), strict=True)
    steps = [RecordedStep(shapes[step], round(seconds * 1e9)) for step, seconds in times if step in shapes]
    return steps, replayed


def first_divergence(measured: Path, simulated: Path) -> dict[str, Any]:
    """The first step that was planned otherwise, counted from 0, and in what; `step` None: none was."""
    theirs, ours = _digests(measured), _digests(simulated)
    shared = min(len(theirs), len(ours))
    step = next((i for i in range(shared) if theirs[i] != ours[i]), shared)
    found: dict[str, Any] = {"num_steps": len(theirs), "num_steps_simulated": len(ours)}
    if step == len(theirs) == len(ours):
        return {**found, "step": None, "differs": []}
    pair = [_plan_at(folder, step) for folder in (measured, simulated)]
    return {**found, "step": step, "differs": _differing(*pair), "measured": pair[0], "simulated": pair[1]}


def _digests(result: Path) -> list[str]:
    return [entry["digest"] for entry in read_journal(result / JOURNAL) if entry.get("call") == "plan"]


def _plan_at(result: Path, step: int) -> str | None:
    """The plan in words; None where the run has ended by then."""
    found: list[str] = []

    def note(plan: StepPlan) -> None:
        if plan.step == step:
            found.append(plan.digest())

    replay(result, on_plan=note)
    return found[0] if found else None


def _differing(theirs: str | None, ours: str | None) -> list[str]:
    if theirs is None or ours is None:
        return ["one of the runs has ended"]
    pairs = [text.split("|", len(PARTS) - 1) for text in (theirs, ours)]
    for parts in pairs:
        parts += [""] * (len(PARTS) - len(parts))
    return [name for name, one, other in zip(PARTS, *pairs, strict=True) if one != other]
