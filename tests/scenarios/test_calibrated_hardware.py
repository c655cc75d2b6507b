"""`hardware.efficiencies` and `hardware.residual`: what a fit says of a machine, as a scenario states it."""

from __future__ import annotations

from typing import Any

import pytest

from llmsim.policies.core.estimator import StepShape
from llmsim.scenarios.assembly import Assembly, assemble
from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.loading import scenario_from

DECODE = StepShape((), 1, 1000, 1000, 1, 0)


def assembly(**hardware: Any) -> Assembly:
    raw = {"name": "a", "model": "llama-3.1-8b", "workload": {"type": "independent"}}
    return assemble(scenario_from({**raw, "hardware": {"gpu": "h100-sxm", **hardware}}))


def test_an_efficiency_replaces_the_one_taken_beforehand() -> None:
    usual, faster = (assembly(**given).cost_model() for given in ({}, {"efficiencies": {"weights": 1.0, "kv": 1.0}}))
    assert faster.step_cost(DECODE).device_ns < 0.85 * usual.step_cost(DECODE).device_ns
    assert faster.step_cost(DECODE).host_ns == usual.step_cost(DECODE).host_ns
    free = assembly(efficiencies={"host_step_s": 0}).cost_model()
    assert free.step_cost(DECODE).host_ns == usual.step_cost(DECODE).host_ns - 1_000_000


def test_a_residual_is_added_to_every_step_of_its_type() -> None:
    kernels, whole = (assembly(**given).cost_model() for given in ({}, {"residual": {"decode_s": 0.002}}))
    assert whole.step_cost(DECODE).device_ns == kernels.step_cost(DECODE).device_ns + 2_000_000


@pytest.mark.parametrize(
    ("hardware", "says"),
    [
        ({"efficiencies": {"weights": 1.2}}, "hardware.efficiencies.weights: 1.2 is out of range"),
        ({"efficiencies": {"speed": 1}}, "hardware.efficiencies.speed: unknown key; choose"),
        ({"residual": {"decode_s": 2}}, "hardware.residual.decode_s: 2 is out of range"),
        (
            {"profile": "p", "efficiencies": {"kv": 0.5}},
            "hardware.efficiencies: goes with a GPU known by its data sheet",
        ),
    ],
)
def test_what_cannot_be_is_told_by_its_key(hardware: dict[str, Any], says: str) -> None:
    with pytest.raises(ScenarioError) as raised:
        assembly(**hardware)
    assert says in str(raised.value)
