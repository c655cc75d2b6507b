"""Fits what a scenario's hardware says of its speed, efficiencies and residuals, to measured runs played again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...calibrate.comparison import Mask, measured_times
from ...calibrate.deviations import deviations
from ...calibrate.fit_parameters import RESIDUALS, hardware_keys, parameters
from ...calibrate.least_squares import CannotTell, Fitted, fit
from ...calibrate.runs.measured_run import MeasuredRun
from ...sim.columns import Floats
from ...sim.cost_model.residual import StretchPricer
from ...sim.cost_model.roofline import Efficiencies
from ..assembly import Assembly
from ..errors import ScenarioError
from ..schema_calibration import EfficiencySettings, ResidualSettings
from .measured_replay import replay

Trial = tuple[MeasuredRun, Assembly, Mask]
"""A run, the scenario it is played in, and the requests that the fit may see."""


@dataclass(frozen=True, slots=True)
class FittedHardware:
    """What was fitted."""

    values: Mapping[str, float]
    fitted: Fitted

    def as_json(self) -> dict[str, Any]:
        """Values, and how much nearer they brought the fitted requests."""
        fitted = self.fitted
        return {
            "values": dict(self.values),
            "rms_before": fitted.rms_before,
            "rms_after": fitted.rms_after,
            "condition": fitted.condition,
            "at_bounds": list(fitted.at_bounds),
        }


def fit_hardware(
    trials: Sequence[Trial], names: Sequence[str], fewer: Sequence[str], warn: Callable[[str], None]
) -> FittedHardware:
    """Fit the parameters of these names to all trials at once, from what the first scenario says.

    Where the runs cannot tell them apart, `fewer` are fitted in their place and `warn` gets the reason; CannotTell
    where there are none. ScenarioError where a trial has no requests.
    """
    for run, _, of in trials:
        if not of.any():
            raise ScenarioError(run.source, None, "none of the requests to be fitted on comes after the warm-up")
    settings = trials[0][1].scenario.hardware.efficiencies
    given = Efficiencies() if settings is None else settings.efficiencies()

    stay = set(names) <= set(RESIDUALS)  # then kernels are priced once for all tries
    kernels = [assembly.kernel_cost_model() if stay else None for _, assembly, _ in trials]

    def apart(values: dict[str, float]) -> Floats:
        return np.concatenate([_deviations(*pair, values) for pair in zip(trials, kernels, strict=True)])

    try:
        found = fit(parameters(names, given), apart)
    except CannotTell as reason:
        if not fewer:
            raise
        warn(f"{reason}; fitted instead: {', '.join(fewer)}")
        found = fit(parameters(fewer, given), apart)
    for name in found.at_bounds:
        warn(f"{name} ends at {found.values[name]:.3g}, its bound: something else than it is amiss")
    return FittedHardware(found.values, found)


def _deviations(trial: Trial, kernels: StretchPricer | None, values: Mapping[str, float]) -> Floats:
    run, assembly, of = trial
    fitted = fitted_assembly(assembly, values)
    simulated = replay(fitted, run, cost_model=fitted.cost_model(kernels)).times()
    return deviations(measured_times(run), simulated, of)


def fitted_assembly(assembly: Assembly, values: Mapping[str, float]) -> Assembly:
    """The same on hardware with the fitted values; a residual comes on top of one that is there."""
    hardware, keys = assembly.scenario.hardware, hardware_keys(values)
    update: dict[str, object] = {}
    if "efficiencies" in keys:
        before = {} if hardware.efficiencies is None else hardware.efficiencies.model_dump(exclude_none=True)
        update["efficiencies"] = EfficiencySettings(**{**before, **keys["efficiencies"]})
    if "residual" in keys:
        there = hardware.residual or ResidualSettings()
        sums = {name: getattr(there, name) + value for name, value in keys["residual"].items()}
        update["residual"] = ResidualSettings(**sums)
    scenario = assembly.scenario.model_copy(update={"hardware": hardware.model_copy(update=update)})
    return replace(assembly, scenario=scenario)
