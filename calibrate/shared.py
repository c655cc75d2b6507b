"""How much less decodes cost that have context in the same KV blocks: one coefficient, fitted to pairs of whole steps.

Of each pair one has blocks of its own for each decode, in the other all have the first blocks of their contexts in
common; the contexts are the same. What is read again may still be in a cache of the device:

    attention = time(context) - alpha (time(context) - time(context - shared))

With 0 it costs as much as the first time, with 1 nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from ..policies.core.estimator import StepShape
from ..sim.cost_model.profile import Profile
from ..sim.cost_model.profile_header import SharedContexts
from ..sim.cost_model.profiled import ProfiledCostModel
from .whole_steps import WholeStep, model_of

FEWEST = 4
"""Pairs below which nothing is fitted."""


def fit_shared(profile: Profile, steps: Sequence[WholeStep]) -> tuple[SharedContexts, tuple[float, float] | None]:
    """The coefficient of a fitted profile, and the mean |relative error| of what sharing saves of a step, by twin.

    The errors are without it and with it, as shares of the step. The coefficient minimises their squares.
    """
    pairs = _pairs(steps)
    if len(pairs) < FEWEST:
        return SharedContexts(), None
    header = profile.header.model_copy(update={"shared_contexts": SharedContexts(alpha=1.0)})
    most = cache(lambda num_layers: model_of(replace(profile, header=header), num_layers))
    saved = np.array([1 - shared.time_us / alone.time_us for alone, shared in pairs])
    could = np.array([_saved(most(shared.num_layers), shared.shape) for _, shared in pairs])
    alpha = float(np.clip(np.dot(saved, could) / np.dot(could, could), 0.0, 1.0)) if could.any() else 0.0
    errors = (round(float(np.mean(np.abs(saved - a * could))), 4) for a in (0.0, alpha))
    return SharedContexts(alpha=round(alpha, 4)), (next(errors), next(errors))


def _pairs(steps: Sequence[WholeStep]) -> list[tuple[WholeStep, WholeStep]]:
    """Steps of decodes whose contexts have blocks in common, each behind the same one in which they have none."""
    alone = {_sizes(step): step for step in steps if not step.shape.shared_tokens}
    shared = [step for step in steps if step.shape.shared_tokens]
    return [(alone[_sizes(step)], step) for step in shared if _sizes(step) in alone]


def _sizes(step: WholeStep) -> tuple[object, ...]:
    shape = step.shape
    return step.num_layers, tuple(shape.prefill_chunks), *shape[1:4]


def _saved(model: ProfiledCostModel, shape: StepShape) -> float:
    """What a step saves by sharing, as a share of it."""
    return 1 - model.step_cost(shape).device_ns / model.step_cost(shape._replace(shared_tokens=0)).device_ns
