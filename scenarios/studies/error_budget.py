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

    def means(assembly: Assembly, *, intended: bool = False) -> dict[str, float]:
        cost_model = assembly.cost_model(kernels)
        times = replay(assembly, run, cost_model=cost_model, intended=intended, cold_start_s=cold_start_s).times()
        return _means(times, measured, of)

    def with_residual(residual_s: float) -> Assembly:
        return fitted_assembly(assembly, {"residual": residual_s})

    theirs, replayed = _means(measured, measured, of), _means(simulated, measured, of)
    intended = None
    if all(request.intended_s is not None for request in run.requests):
        intended = means(assembly, intended=True)
    constant, righted = _step_time_put_right(theirs, replayed, lambda residual_s: means(with_residual(residual_s)))
    parts = {}
    for name in BUDGETED:
        if name in theirs:
            unit = theirs[name]
            parts[name] = {
                "replay": (replayed[name] - unit) / unit,
                "arrival": None if intended is None else (intended[name] - replayed[name]) / unit,
                "step_time": None if righted is None else (replayed[name] - righted[name]) / unit,
                "left": None if righted is None else (righted[name] - unit) / unit,
            }
    return Budget(parts, constant)


def _means(times: RunTimes, measured: RunTimes, of: Mask) -> dict[str, float]:
    """Mean latencies, each over the requests of which it was measured."""
    theirs, ours = measured.latencies(), times.latencies()
    masks = {name: of & np.isfinite(theirs[name]) for name in BUDGETED}
    return {name: float(np.mean(ours[name][mask])) for name, mask in masks.items() if mask.any()}


def _step_time_put_right(
    theirs: Means, replayed: Means, means_with: Callable[[float], Means]
) -> tuple[float | None, Means | None]:
    """The constant with which the mean TPOT is the measured one, by secants, and the means with it."""
    if "tpot_s" not in theirs:
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
