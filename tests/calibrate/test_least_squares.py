from __future__ import annotations

import numpy as np
import pytest

from llmsim.calibrate.fit_parameters import KNOWN, hardware_keys, parameters
from llmsim.calibrate.least_squares import CannotTell, Parameter, fit
from llmsim.sim.columns import Floats
from llmsim.sim.cost_model.roofline import Efficiencies

TIMES = np.linspace(1.0, 2.0, 40)


def parameter(name: str, lowest: float = -10.0) -> Parameter:
    return Parameter(name, 0.0, 0.05, lowest, 10.0)


def test_a_fit_finds_what_made_the_data() -> None:
    def deviations(values: dict[str, float]) -> Floats:
        return values["a"] - 0.3 + (values["b"] + 0.2) * TIMES**3

    found = fit([parameter("a"), parameter("b")], deviations)
    assert found.values == pytest.approx({"a": 0.3, "b": -0.2}, abs=1e-3)
    assert found.rms_after < 1e-3 < found.rms_before


def test_a_value_stays_within_its_bounds_and_that_is_told() -> None:
    found = fit([parameter("a", lowest=0.0)], lambda values: values["a"] + 0.5 + 0 * TIMES)
    assert found.values["a"] == pytest.approx(0.0, abs=1e-6)
    assert found.at_bounds == ("a",)


def test_two_parameters_that_do_the_same_are_refused_by_name() -> None:
    def deviations(values: dict[str, float]) -> Floats:
        return (values["weights"] + values["gap"] - 0.1) * TIMES + values["other"] * TIMES**9 / 100

    with pytest.raises(CannotTell, match=r"cannot tell (weights and gap|gap and weights) apart"):
        fit([parameter("weights"), parameter("other"), parameter("gap")], deviations)


def test_a_parameter_without_effect_is_refused_by_name() -> None:
    with pytest.raises(CannotTell, match="cannot tell host"):
        fit([parameter("a"), parameter("host")], lambda values: values["a"] + TIMES)


def test_every_known_parameter_has_a_start_between_its_bounds() -> None:
    for given in parameters(KNOWN, Efficiencies()):
        assert given.lowest <= given.start <= given.highest
        assert given.step > 0


def test_values_become_keys_of_the_hardware() -> None:
    keys = hardware_keys({"bf16": 0.7, "residual": 1e-3, "prefill_residual": 2e-3})
    assert keys == {
        "efficiencies": {"bf16": 0.7},
        "residual": {"decode_s": pytest.approx(1e-3), "prefill_s": pytest.approx(3e-3), "mixed_s": pytest.approx(3e-3)},
    }
    assert hardware_keys({}) == {}
