"""Where the error of a prediction comes from: step time, arrivals, and what is left.

    predicted from intended arrivals - measured
        = [intended arrivals - measured arrivals]        arrival     what not knowing the real arrivals would add
        + [measured arrivals - the same, step time put right]   step time
        + [step time put right - measured]               left        scheduling, jitter, what one constant cannot mend

Step time is put right by the one constant, added to every step, with which the mean TPOT is the measured one. All are
shares of the measured mean; step time and left together are the error of the replay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...calibrate.comparison import Mask, RunTimes
from ...calibrate.runs.measured_run import MeasuredRun
from ..assembly import Assembly
from .fitted_replay import fitted_assembly
from .measured_replay import replay

BUDGETED = ("ttft_s", "tpot_s", "e2e_s")
CLOSE = 1e-3
MAX_TRIES = 5
_FIRST_STEP_S = 2e-4
Means = dict[str, float]


@dataclass(frozen=True, slots=True)
class Budget:
    """The parts of each latency's mean error, as shares of the measured mean."""

    parts: dict[str, dict[str, float | None]]
    """`{metric: {replay, arrival, step_time, left}}`; None: not known."""
    constant_s: float | None
    """What was added to every step to put its time right."""

    def as_json(self) -> dict[str, Any]:
        """The parts, and the constant."""
        return {"step_constant_s": self.constant_s, **self.parts}


def error_budget(
    assembly: Assembly,
    run: MeasuredRun,
    measured: RunTimes,
    simulated: RunTimes,
    of: Mask,
    cold_start_s: Sequence[float] = (),
) -> Budget:
    """The budget of a replay over the requests that the mask picks; a few more simulations."""
    kernels = assembly.kernel_cost_model()

    def means_with(residual_s: float, *, intended: bool = False) -> Means:
        fitted = fitted_assembly(assembly, {"residual": residual_s})
        cost_model = fitted.cost_model(kernels)
        records = replay(fitted, run, cost_model=cost_model, intended=intended, cold_start_s=cold_start_s)
        return _means(records.times(), measured, of)

    theirs, replayed = _means(measured, measured, of), _means(simulated, measured, of)
    knows_intended = all(request.intended_s is not None for request in run.requests)
    intended = means_with(0.0, intended=True) if knows_intended else None
    constant, righted = _step_time_put_right(theirs, replayed, means_with)
    parts = {name: _parts(name, theirs[name], replayed, intended, righted) for name in theirs if theirs[name] > 0}
    return Budget(parts, constant)


def _parts(
    name: str, unit: float, replayed: Means, intended: Means | None, righted: Means | None
) -> dict[str, float | None]:
    return {
        "replay": (replayed[name] - unit) / unit,
        "arrival": None if intended is None else (intended[name] - replayed[name]) / unit,
        "step_time": None if righted is None else (replayed[name] - righted[name]) / unit,
        "left": None if righted is None else (righted[name] - unit) / unit,
    }


def _means(times: RunTimes, measured: RunTimes, of: Mask) -> Means:
    """Mean latencies, each over the requests of which it was measured."""
    theirs, ours = measured.latencies(), times.latencies()
    masks = {name: of & np.isfinite(theirs[name]) for name in BUDGETED}
    return {name: float(np.mean(ours[name][mask])) for name, mask in masks.items() if mask.any()}


def _step_time_put_right(
    theirs: Means, replayed: Means, means_with: Callable[[float], Means]
) -> tuple[float | None, Means | None]:
    """The constant with which the mean TPOT is the measured one, by secants, and the means with it."""
    if theirs.get("tpot_s", 0.0) <= 0:
        return None, None
    best = (abs(replayed["tpot_s"] / theirs["tpot_s"] - 1), 0.0, replayed)
    before, excess_before = 0.0, replayed["tpot_s"] - theirs["tpot_s"]
    constant = -excess_before if abs(excess_before) > _FIRST_STEP_S else _FIRST_STEP_S
    for _ in range(MAX_TRIES):
        if best[0] <= CLOSE:
            break
        means = means_with(constant)
        excess = means["tpot_s"] - theirs["tpot_s"]
        best = min(best, (abs(excess / theirs["tpot_s"]), constant, means), key=lambda one: one[0])
        if excess == excess_before:
            break
        following = constant - excess * (constant - before) / (excess - excess_before)
        before, excess_before, constant = constant, excess, following
    return best[1], best[2]
