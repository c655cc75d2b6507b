"""How fast a device was, by what its steps took beside their price."""

from __future__ import annotations

import pytest

from llmsim.calibrate.loop.pace import pace_of
from llmsim.calibrate.loop.recorded import RecordedStep
from llmsim.policies.core.estimator import StepShape
from llmsim.tests.support.linear_estimator import LinearEstimator

MODEL = LinearEstimator()


def taken(num_decodes: int, factor: float) -> RecordedStep:
    shape = StepShape((), num_decodes, num_decodes * 100, 100, num_decodes)
    return RecordedStep(shape, round(MODEL.step_cost(shape).device_ns * factor))


def test_a_device_that_slows_down_midway_is_seen_to() -> None:
    steps = [taken(1 + i % 7, 1.0 if i < 100 else 1.1) for i in range(200)]
    pace = pace_of(steps, MODEL)
    assert pace.whole == pytest.approx(0.05, abs=0.005)
    assert pace.fastest == pytest.approx(0.0, abs=0.005)
    assert pace.slowest == pytest.approx(0.1, abs=0.005)


def test_a_steady_device_has_one_pace_however_short_the_run() -> None:
    pace = pace_of([taken(50, 0.9)] * 3, MODEL)
    assert pace.whole == pace.fastest == pace.slowest == pytest.approx(-0.1, abs=0.005)


def test_empty_steps_do_not_count() -> None:
    steps = [taken(8, 1.0), RecordedStep(StepShape(), 90_000)]
    assert pace_of(steps, MODEL) == pace_of(steps[:1], MODEL)
    with pytest.raises(ValueError, match="no pace"):
        pace_of(steps[1:], MODEL)
