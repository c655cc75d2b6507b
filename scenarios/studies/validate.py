"""`llmsim calibrate validate`: a measured run simulated again, and how far the simulation is from it.

The same requests come at their measured times to an engine with the same settings. Requests of the warm-up are told
apart, as are those that never queued: they show the time of steps alone, the others mostly throughput.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...calibrate.comparison import (
    Errors,
    Mask,
    RunTimes,
    gap_errors,
    latency_errors,
    measured_times,
    never_queued,
)
from ...calibrate.comparison_series import SeriesComparison, compare_series
from ...calibrate.fit_parameters import SHARES
from ...calibrate.runs.measured_run import MeasuredRun
from ..assembly import Assembly
from ..errors import ScenarioError
from .cold_start import found_cold_start
from .error_budget import Budget, error_budget
from .fitted_replay import FittedHardware, fit_hardware, fitted_assembly
from .measured_replay import ReplayRecords, replay
from .measured_scenario import known_gpu
from .run_parts import Part, Warmup

AT_ONCE_S = 0.01
"""A request that was scheduled within 10 ms of being queued was taken into the next step: it did not queue."""
RESIDUALS = ("decode_residual", "prefill_residual")


@dataclass(frozen=True, slots=True)
class Validation:
    """A measured run and its simulation."""

    run: MeasuredRun
    assembly: Assembly
    warmup_s: float
    cold_start_s: tuple[float, ...]
    """What the first steps took the host in the simulation, beyond which it is as ever."""
    measured: RunTimes
    records: ReplayRecords
    simulated: RunTimes
    scored: Mask
    """The requests that `errors` is about: after the warm-up, and not those that a residual was fitted on."""
    errors: Errors
    warmup_errors: Errors
    num_never_queued: int
    never_queued_errors: Errors
    series: SeriesComparison | None
    budget: Budget
    fitted: FittedHardware | None
    fitted_errors: Errors
    """On the requests that a residual was fitted on."""

    def as_json(self) -> dict[str, Any]:
        """Everything as one JSON object; times in seconds, errors as shares."""
        hardware = self.assembly.scenario.hardware.model_dump(mode="json", exclude_none=True)
        warmup = self.measured.arrival_s < self.warmup_s
        return {
            "run": str(self.run.source),
            "model": self.assembly.scenario.model,
            "hardware": hardware,
            "usable_blocks": self.assembly.config.num_blocks - 1,
            "num_requests": int(self.scored.sum()),
            "errors": self.errors,
            "warmup": {"seconds": self.warmup_s, "num_requests": int(warmup.sum()), "errors": self.warmup_errors},
            "cold_start_s": list(self.cold_start_s),
            "never_queued": {"num_requests": self.num_never_queued, "errors": self.never_queued_errors},
            "series": None if self.series is None else self.series.as_json(),
            "budget": self.budget.as_json(),
            "fitted": None if self.fitted is None else {**self.fitted.as_json(), "errors": self.fitted_errors},
            "num_preemptions": self.records.num_preemptions,
            "step_time_from": self.records.shares.summary(),
            "assumptions": assumptions(self.run, self.assembly),
        }


def validate(
    run: MeasuredRun,
    assembly: Assembly,
    warmup: Warmup,
    fit_on: Part | None,
    warn: Callable[[str], None],
    cold_start_s: Sequence[float] | None = None,
) -> Validation:
    """Simulate the run and compare; with `fit_on`, after fitting a residual to those requests.

    `cold_start_s` is what the first steps take the host; where left out, what the warm-up's requests tell of it.
    """
    measured, warmup_s = measured_times(run), warmup.seconds(run)
    after = measured.arrival_s >= warmup_s
    chosen = np.zeros_like(after) if fit_on is None else fit_on.of(run) & after
    fitted = None
    if fit_on is not None:
        fitted = fit_hardware([(run, assembly, chosen)], RESIDUALS, ("residual",), warn)
        assembly = fitted_assembly(assembly, fitted.values)
    scored = after & ~chosen
    if not scored.any():
        raise ScenarioError(run.source, None, "no request is left to be scored, after the warm-up and those fitted on")
    cold = found_cold_start(run, assembly, warmup_s) if cold_start_s is None else tuple(cold_start_s)
    records = replay(assembly, run, warmup_s=warmup_s, cold_start_s=cold)
    simulated = records.times()
    at_once = scored & never_queued(run, AT_ONCE_S)
    errors = latency_errors(measured, simulated, scored)
    if fit_on is None:
        errors |= gap_errors(run, records.gaps(), scored)
    num_blocks = assembly.config.num_blocks - 1
    return Validation(
        run=run,
        assembly=assembly,
        warmup_s=warmup_s,
        cold_start_s=cold,
        measured=measured,
        records=records,
        simulated=simulated,
        scored=scored,
        errors=errors,
        warmup_errors=latency_errors(measured, simulated, ~after),
        num_never_queued=int(at_once.sum()),
        never_queued_errors=latency_errors(measured, simulated, at_once),
        series=None if run.series is None else compare_series(run.series, records.steps, num_blocks),
        budget=error_budget(assembly, run, measured, simulated, scored, cold),
        fitted=fitted,
        fitted_errors=latency_errors(measured, simulated, chosen),
    )


def assumptions(run: MeasuredRun, assembly: Assembly) -> list[str]:
    """What the comparison takes for granted since the run does not say it: sentences for people."""
    said = list(run.assumptions)
    theirs = known_gpu(run.setup.gpu) if run.setup.gpu else None
    profiled = None if assembly.profile is None else assembly.profile.header.gpu
    if theirs is not None and (ours := profiled or assembly.gpu.name) != theirs:
        said.append(f"the run is of {theirs}, but steps are priced as those of {ours}")
    if assembly.config.enable_prefix_caching:
        state = "empty" if assembly.scenario.run.cache == "cold" else "what a run of the same requests leaves"
        said.append(f"the state of the real engine's prefix cache at the run's start is unknown: {state} is assumed")
        if not run.shares_content:
            said.append("the run does not say what its prompts have in common: they are taken to share nothing")
    engine = assembly.scenario.engine
    if all(getattr(engine, key, None) is None for key in ("num_gpu_blocks_override", "max_total_tokens")):
        says = f"the run does not say how many KV blocks there were: {assembly.config.num_blocks:,} are assumed"
        said.append(f"{says}, as the data sheet's memory holds")
    return said


def values_text(values: Mapping[str, float]) -> str:
    """Fitted values in words: shares as they are, times in units that suit."""
    return ", ".join(f"{name} {_value_text(name, value)}" for name, value in values.items())


def _value_text(name: str, value: float) -> str:
    return f"{value:.3f}" if name in SHARES else f"{1e3 * value:+.3f} ms"
