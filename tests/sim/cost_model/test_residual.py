from __future__ import annotations

from dataclasses import replace

import pytest

from llmsim.policies.core import specs
from llmsim.policies.core.estimator import StepShape
from llmsim.sim.cost_model.analytic import AnalyticCostModel
from llmsim.sim.cost_model.profile_header import SharedContexts
from llmsim.sim.cost_model.profiled import ProfiledCostModel
from llmsim.sim.cost_model.residual import Residual, ResidualCostModel
from llmsim.tests.support.profiles import TINY, fitted

KERNELS = AnalyticCostModel(specs.model("llama-3.1-8b"), specs.gpu("h100-sxm"))
DECODE = StepShape((), 4, 4000, 1000, 4, 0)
PREFILL = StepShape(((512, 0),), 0, 0, 0, 1, 0)
MIXED = StepShape(((512, 0),), 4, 4000, 1000, 5, 0)


@pytest.mark.parametrize(("shape", "added"), [(DECODE, 1000), (PREFILL, 2000), (MIXED, 3000), (StepShape(), 0)])
def test_each_type_of_step_takes_its_own_residual(shape: StepShape, added: int) -> None:
    model = ResidualCostModel(KERNELS, Residual(1000, 2000, 3000))
    assert model.step_cost(shape).device_ns == KERNELS.step_cost(shape).device_ns + added


def test_a_stretch_shares_what_its_steps_share() -> None:
    header = fitted().header.model_copy(update={"shared_contexts": SharedContexts(alpha=0.5)})
    model = ResidualCostModel(ProfiledCostModel(replace(fitted(), header=header), TINY), Residual(1000))
    shape = StepShape((), 4, 4000, 1000, 4)
    (stretch,) = model.decode_stretch(4, 4000, 1000, 1, 2500).device_ns.tolist()
    assert stretch == model.step_cost(shape._replace(shared_tokens=2500)).device_ns < model.step_cost(shape).device_ns


@pytest.mark.parametrize("added", [-(10**9), -200_000, 0, 123_456])
def test_a_stretch_equals_its_steps_and_no_step_beats_its_floor(added: int) -> None:
    model = ResidualCostModel(KERNELS, Residual(added, added, added))
    stretch = model.decode_stretch(4, 4000, 1000, 20)
    for index in range(20):
        cost = model.step_cost(StepShape((), 4, 4000 + 4 * index, 1000 + index, 4, 0))
        assert stretch.device_ns[index] == cost.device_ns
        assert cost.device_ns >= max(cost.compute_ns, cost.memory_ns)
