"""Steps of a real run: what each held, how long the device took, and how far a cost model is from that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ...policies.core.estimator import StepShape, StepTimeEstimator
from ...sim.columns import Floats
from ...sim.cost_model.correction import Kind, kind_of
from ..step_residual import KINDS


class RecordedStep(NamedTuple):
    """A step that the device has carried out."""

    shape: StepShape
    device_ns: int


class StepErrors(NamedTuple):
    """priced / measured - 1 over the steps of a kind."""

    num_steps: int
    measured_s: float
    """Median."""
    median: float
    """Of the error's size, as the next."""
    p95: float
    bias: float
    """Of all their time together."""
    num_extrapolated: int
    """Steps beyond what the profile has measured."""


class PricedSteps(NamedTuple):
    """Steps of a kind beside their prices; arrays of one length."""

    measured_s: Floats
    priced_s: Floats
    num_extrapolated: int

    def errors(self) -> StepErrors:
        """How far the prices are off."""
        sizes = np.abs(self.priced_s / self.measured_s - 1)
        return StepErrors(
            num_steps=len(sizes),
            measured_s=float(np.median(self.measured_s)),
            median=float(np.median(sizes)),
            p95=float(np.percentile(sizes, 95)),
            bias=float(self.priced_s.sum() / self.measured_s.sum() - 1),
            num_extrapolated=self.num_extrapolated,
        )


def of_kind(steps: Iterable[RecordedStep], kind: Kind) -> list[RecordedStep]:
    """Those of this kind; steps that only wait for what is in flight are of none."""
    return [step for step in steps if step.shape.num_samples and kind_of(step.shape) == kind]


def priced(steps: Sequence[RecordedStep], model: StepTimeEstimator) -> dict[Kind, PricedSteps]:
    """What a cost model makes of recorded steps, by their kind; kinds that there are none of are left out."""
    found = {}
    for kind in KINDS:
        if chosen := of_kind(steps, kind):
            costs = [model.step_cost(step.shape) for step in chosen]
            measured = np.array([step.device_ns for step in chosen], np.float64) / 1e9
            prices = np.array([cost.device_ns for cost in costs], np.float64) / 1e9
            found[kind] = PricedSteps(measured, prices, sum(cost.extrapolated for cost in costs))
    return found
