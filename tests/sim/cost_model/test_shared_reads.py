"""Decodes that have context in the same KV blocks, priced by a profile that knows what that saves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llmsim.policies.core.estimator import StepShape
from llmsim.sim.cost_model.profile_header import SharedContexts
from llmsim.sim.cost_model.profiled import ProfiledCostModel
from llmsim.tests.support.profiles import TINY, fitted, us

PROFILE = fitted()
COST_MODEL = ProfiledCostModel(PROFILE, TINY)
HEADER = PROFILE.header.model_copy(update={"shared_contexts": SharedContexts(alpha=0.4)})
SHARING = ProfiledCostModel(replace(PROFILE, header=HEADER), TINY)


def test_context_in_the_same_blocks_costs_less_to_read_again():
    alone = StepShape((), 16, 16 * 128, 128, 16)
    shared = alone._replace(shared_tokens=16 * 64)
    read, once = (us("attention", (0, 0, 16, context, context)) for context in (128, 64))
    saved_ns = TINY.num_layers * 0.4 * (read - once) * 1e3
    assert saved_ns > 100
    assert SHARING.step_cost(alone) == COST_MODEL.step_cost(alone) == COST_MODEL.step_cost(shared)
    priced = SHARING.step_cost(shared)
    assert priced.device_ns == pytest.approx(COST_MODEL.step_cost(alone).device_ns - saved_ns, abs=2)
    beside, beside_shared = (shape._replace(prefill_chunks=((64, 0),), num_samples=17) for shape in (alone, shared))
    mixed_ns = COST_MODEL.step_cost(beside).device_ns - saved_ns
    assert SHARING.step_cost(beside_shared).device_ns == pytest.approx(mixed_ns, abs=2)


def test_the_floor_does_not_see_what_a_cache_holds():
    hasty = replace(PROFILE, timings=[timing._replace(time_us=1e-6) for timing in PROFILE.timings])
    model = ProfiledCostModel(replace(hasty, header=HEADER), TINY)
    shape = StepShape((), 64, 64 * 4096, 4096, 64, shared_tokens=60 * 4096)
    less = shape._replace(decode_context_tokens=64 * 4096 - round(0.4 * 60 * 4096), shared_tokens=0)
    whole, cost = (model.step_cost(s) for s in (shape._replace(shared_tokens=0), shape))
    assert cost.device_ns == cost.memory_ns == model.step_cost(less).memory_ns < whole.memory_ns
    assert cost.compute_ns == whole.compute_ns
    stretch = model.decode_stretch(64, 64 * 4096, 4096, 3, 60 * 4096)
    assert stretch.memory_ns.tolist()[0] == cost.memory_ns


def test_no_more_is_shared_than_lies_before_one_of_the_decodes():
    shape = StepShape((), 16, 16 * 128, 128, 16, shared_tokens=15 * 128)
    assert SHARING.step_cost(shape._replace(shared_tokens=10**6)) == SHARING.step_cost(shape)
    one = StepShape((), 1, 128, 128, 1)
    assert SHARING.step_cost(one._replace(shared_tokens=100)) == SHARING.step_cost(one)
