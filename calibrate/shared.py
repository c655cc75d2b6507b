"""How much less decodes cost that have context in the same KV blocks: one coefficient, fitted to pairs of whole steps.

The two steps of a pair hold the same contexts. In one each decode has blocks of its own, in the other all have the
first blocks in common, and what the first has read may still be in a cache of the device when the next one reads it:

    attention = time(context) - alpha (time(context) - time(context - again))

An alpha of 0 means that reading again costs as much as the first time, one of 1 that it costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from ..policies.core.estimator import StepShape
from ..sim.columns import Floats
from ..sim.cost_model.profile import Profile
from ..sim.cost_model.profile_header import SharedContexts
from ..sim.cost_model.profiled import ProfiledCostModel
from .whole_steps import WholeStep, model_of

FEWEST = 4
"""Pairs below which nothing is fitted."""


def fit_shared(profile: Profile, steps: Sequence[WholeStep]) -> tuple[SharedContexts, tuple[float, float] | None]:
    """The coefficient of a fitted profile, and the mean |error| of what sharing saves, without it and with it.

    Savings, and so the errors, are shares of the step without blocks in common. The coefficient minimises the errors'
    squares, and is 0 where each pair, left out, is not told better by that of the others than by none. The second
    error is of pairs that were left out. Where pairs are too few the header's coefficient stays.
    """
    pairs = _pairs(steps)
    if len(pairs) < FEWEST:
        return profile.header.shared_contexts, None
    header = profile.header.model_copy(update={"shared_contexts": SharedContexts(alpha=1.0)})
    most = cache(lambda num_layers: model_of(replace(profile, header=header), num_layers))
    saved = np.array([1 - shared.time_us / alone.time_us for alone, shared in pairs])
    could = np.array([_saved(most(shared.num_layers), shared.shape) for _, shared in pairs])
    without, left_out = float(np.mean(np.abs(saved))), _left_out_error(saved, could)
    alpha = _alpha(saved, could) if left_out < without else 0.0
    return SharedContexts(alpha=round(alpha, 4)), (round(without, 4), round(left_out if alpha else without, 4))


def _alpha(saved: Floats, could: Floats) -> float:
    return float(np.clip(np.dot(saved, could) / np.dot(could, could), 0.0, 1.0)) if could.any() else 0.0


def _left_out_error(saved: Floats, could: Floats) -> float:
    errors = []
    for i in range(len(saved)):
        others = np.arange(len(saved)) != i
        errors.append(abs(saved[i] - _alpha(saved[others], could[others]) * could[i]))
    return float(np.mean(errors))


def _pairs(steps: Sequence[WholeStep]) -> list[tuple[WholeStep, WholeStep]]:
    """Steps of decodes that have blocks in common, each behind the same one in which they have none."""
    alone = {_sizes(step): step for step in steps if not step.shape.shared_tokens}
    shared = [step for step in steps if step.shape.shared_tokens]
    return [(alone[_sizes(step)], step) for step in shared if _sizes(step) in alone]


def _sizes(step: WholeStep) -> tuple[object, ...]:
    shape = step.shape
    return step.num_layers, tuple(shape.prefill_chunks), *shape[1:4]


def _saved(model: ProfiledCostModel, shape: StepShape) -> float:
    """What a step saves by sharing, as a share of it."""
    return 1 - model.step_cost(shape).device_ns / model.step_cost(shape._replace(shared_tokens=0)).device_ns
