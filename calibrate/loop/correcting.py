"""Learns from a run's recorded steps what their prices leave out: ridge regression, a line of each kind of step.

Errors count relative to the step's time. Features are scaled to their spread, and their slopes are drawn towards zero
(Hoerl and Kennard 1970); the constant is not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...policies.core.estimator import StepTimeEstimator
from ...sim.cost_model.correction import FEATURES, Kind, KindCorrection, features_of
from ..step_residual import KINDS
from .recorded import RecordedStep, of_kind

PULL = 0.05
"""Of the ridge, as a share of the number of steps."""
FEWEST = 20
"""Steps of a kind below which nothing is learned of it."""


def learned(steps: Sequence[RecordedStep], model: StepTimeEstimator) -> dict[Kind, KindCorrection]:
    """The corrections of a cost model, of each kind that there are steps enough of."""
    found = {}
    for kind in KINDS:
        chosen = of_kind(steps, kind)
        if len(chosen) >= FEWEST:
            found[kind] = _line(chosen, model)
    return found


def _line(steps: Sequence[RecordedStep], model: StepTimeEstimator) -> KindCorrection:
    sizes = np.array([features_of(step.shape) for step in steps], np.float64)
    measured = np.array([step.device_ns for step in steps], np.float64)
    missing = measured - np.array([model.step_cost(step.shape).device_ns for step in steps], np.float64)
    weights = measured**-2.0 / np.mean(measured**-2.0)
    center = np.average(sizes, axis=0, weights=weights)
    spread = np.sqrt(np.average((sizes - center) ** 2, axis=0, weights=weights))
    scale = np.where(spread > 0, spread, 1.0)
    scaled = (sizes - center) / scale
    mean = float(np.average(missing, weights=weights))
    pull = PULL * len(steps) * np.eye(len(FEATURES))
    normal = (scaled * weights[:, None]).T @ scaled + pull
    slopes = np.linalg.solve(normal, (scaled * weights[:, None]).T @ (missing - mean)) / scale
    return KindCorrection(
        constant_ns=mean - float(slopes @ center),
        slopes_ns=tuple(slopes.tolist()),
        low=tuple(sizes.min(axis=0).tolist()),
        high=tuple(sizes.max(axis=0).tolist()),
    )
