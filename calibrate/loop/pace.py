"""How fast a device was during a run: what its steps took beside what a profile prices them at.

Each run of a scenario is priced by the same profile, so what differs between runs, or between parts of one, is the
device's own speed. What all have in common is the profile's error, or how fast the device was while it was measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...policies.core.estimator import StepTimeEstimator
from .recorded import RecordedStep

PARTS = 10


class Pace(NamedTuple):
    """measured / priced - 1: above zero the device was slower than its profile says."""

    whole: float
    """Over all steps' time."""
    fastest: float
    """Of ten parts of the run, each with as many steps."""
    slowest: float


def pace_of(steps: Sequence[RecordedStep], model: StepTimeEstimator) -> Pace:
    """Of the steps of a run, in their order. ValueError where it has none."""
    busy = [step for step in steps if step.shape.num_samples]
    if not busy:
        raise ValueError("a run without steps has no pace")
    measured = np.array([step.device_ns for step in busy], np.float64)
    priced = np.array([model.step_cost(step.shape).device_ns for step in busy], np.float64)
    pieces = np.array_split(np.arange(len(busy)), min(PARTS, len(busy)))
    parts = [float(measured[piece].sum() / priced[piece].sum() - 1) for piece in pieces]
    return Pace(float(measured.sum() / priced.sum() - 1), min(parts), max(parts))
