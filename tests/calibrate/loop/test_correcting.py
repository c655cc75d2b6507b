"""Corrections that are learned from steps, and what becomes of steps beyond those."""

from __future__ import annotations

import numpy as np
import pytest

from llmsim.calibrate.loop.correcting import FEWEST, learned
from llmsim.calibrate.loop.recorded import RecordedStep, priced
from llmsim.policies.core.estimator import StepCost, StepShape
from llmsim.sim.cost_model.correction import CorrectedCostModel, features_of
from llmsim.tests.support.linear_estimator import LinearEstimator

MODEL = LinearEstimator()


def decodes(count: int, context: int) -> StepShape:
    return StepShape((), count, count * context, context, count)


def slower(shape: StepShape) -> RecordedStep:
    """50 ns more, 4 for each decode and a hundredth for each token of context."""
    _, count, context = features_of(shape)
    return RecordedStep(shape, MODEL.step_cost(shape).device_ns + round(50 + 4 * count + context / 100))


def many(seed: int) -> list[RecordedStep]:
    rng = np.random.default_rng(seed)
    return [slower(decodes(int(rng.integers(1, 20)), int(rng.integers(20, 400)))) for _ in range(200)]


def test_a_correction_learned_from_one_run_mends_another() -> None:
    unseen = many(1)
    corrected = priced(unseen, CorrectedCostModel(MODEL, learned(many(0), MODEL)))["decode"].errors()
    plain = priced(unseen, MODEL)["decode"].errors()
    assert plain.bias < -0.03
    assert abs(corrected.bias) < 0.002
    assert corrected.median < plain.median / 5


def test_a_step_beyond_those_it_was_learned_from_is_not_corrected_and_is_counted() -> None:
    model = CorrectedCostModel(MODEL, learned(many(0), MODEL))
    large, mixed = decodes(40, 100), StepShape([(16, 0)], 4, 400, 100, 5)
    for shape in (large, mixed):
        assert model.step_cost(shape) == MODEL.step_cost(shape)
    assert (model.num_corrected, model.num_outside) == (0, 2)
    assert model.step_cost(decodes(10, 100)).device_ns > MODEL.step_cost(decodes(10, 100)).device_ns
    assert (model.num_corrected, model.num_outside) == (1, 2)


def test_few_steps_teach_nothing() -> None:
    assert learned(many(0)[: FEWEST - 1], MODEL) == {}


def test_a_feature_that_never_changes_is_left_alone() -> None:
    steps = [slower(decodes(8, context)) for context in range(20, 60)]
    line = learned(steps, MODEL)["decode"]
    assert line.slopes_ns[:2] == (0.0, 0.0)
    assert line.of(features_of(decodes(8, 30))) == pytest.approx(82 + 2.4, abs=1.0)


def test_a_step_is_never_faster_than_its_floors() -> None:
    class Floored(LinearEstimator):
        def step_cost(self, shape: StepShape) -> StepCost:
            return super().step_cost(shape)._replace(memory_ns=10_000)

    faster = [RecordedStep(decodes(4, 50 + i), 100) for i in range(40)]
    model = CorrectedCostModel(Floored(), learned(faster, MODEL))
    assert model.step_cost(decodes(4, 60)).device_ns == 10_000


def test_empty_steps_are_of_no_kind() -> None:
    assert priced([RecordedStep(StepShape(), 90_000)], MODEL) == {}
