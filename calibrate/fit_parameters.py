"""What a fit to measured runs may change of a cost model, and between which bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..sim.cost_model.roofline import Efficiencies
from .least_squares import Parameter

SHARES = ("weights", "kv", "bf16", "fp8", "attention")
HOST = ("host_step_s", "host_request_s")
RESIDUALS = ("residual", "decode_residual", "prefill_residual")
"""One for all types of steps; one for steps of decodes alone; one for steps that hold prefill."""
KNOWN = (*SHARES, "kernel_gap_s", *HOST, *RESIDUALS)
_STEPS = {"kernel_gap_s": 0.5e-6, "host_step_s": 0.5e-3, "host_request_s": 8e-6}
_HIGHEST = {"kernel_gap_s": 20e-6, "host_step_s": 50e-3, "host_request_s": 1e-3}
_RESIDUAL_STEP_S, _LARGEST_RESIDUAL_S = 0.5e-3, 50e-3


def parameters(names: Sequence[str], given: Efficiencies) -> list[Parameter]:
    """The parameters of these names, starting from the values given, residuals from 0."""
    return [_parameter(name, given) for name in names]


def _parameter(name: str, given: Efficiencies) -> Parameter:
    if name in RESIDUALS:
        return Parameter(name, 0.0, _RESIDUAL_STEP_S, -_LARGEST_RESIDUAL_S, _LARGEST_RESIDUAL_S)
    start = getattr(given, name)
    if name in SHARES:
        return Parameter(name, start, 0.05 * start, 0.05, 1.0)
    return Parameter(name, start, _STEPS[name], 0.0, _HIGHEST[name])


def hardware_keys(values: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """The keys of a scenario's `hardware` that say these values: `efficiencies` and `residual`."""
    efficiencies = {name: value for name, value in values.items() if name not in RESIDUALS}
    keys = {"efficiencies": efficiencies} if efficiencies else {}
    if any(name in values for name in RESIDUALS):
        keys["residual"] = residual_keys(values)
    return keys


def residual_keys(values: Mapping[str, float]) -> dict[str, float]:
    """The residual of each type of step."""
    common = values.get("residual", 0.0)
    prefill = common + values.get("prefill_residual", 0.0)
    return {"decode_s": common + values.get("decode_residual", 0.0), "prefill_s": prefill, "mixed_s": prefill}
