"""What recorded steps take beyond their price: a line in a step's sizes, of each kind of step, within what was seen.

    correction = constant + a x tokens + b x decodes + c x context tokens

A step whose sizes are beyond those of the steps it was learned from is not corrected.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ...policies.core.estimator import StepCost, StepShape, StepTimeEstimator

Kind = Literal["decode", "prefill", "mixed"]
FEATURES = ("tokens", "decodes", "context_tokens")


def features_of(shape: StepShape) -> tuple[float, float, float]:
    """The sizes that a correction goes by: tokens computed, decodes among them, tokens of context that they see."""
    new = sum(q for q, _ in shape.prefill_chunks)
    seen = shape.decode_context_tokens + sum(q + kv for q, kv in shape.prefill_chunks)
    return new + shape.num_decodes, shape.num_decodes, seen


def kind_of(shape: StepShape) -> Kind:
    """What a step holds."""
    if not shape.prefill_chunks:
        return "decode"
    return "mixed" if shape.num_decodes else "prefill"


@dataclass(frozen=True, slots=True)
class KindCorrection:
    """Of one kind of step."""

    constant_ns: float
    slopes_ns: tuple[float, ...]
    """Of each feature."""
    low: tuple[float, ...]
    """The smallest of each feature among the steps that it was learned from."""
    high: tuple[float, ...]

    def of(self, features: tuple[float, ...]) -> float | None:
        """Nanoseconds to add; None outside its range."""
        if any(not low <= x <= high for low, x, high in zip(self.low, features, self.high, strict=True)):
            return None
        return self.constant_ns + sum(slope * x for slope, x in zip(self.slopes_ns, features, strict=True))


class CorrectedCostModel:
    """A cost model and corrections on top. A StepTimeEstimator that counts the steps which it did not correct."""

    def __init__(self, priced: StepTimeEstimator, corrections: Mapping[Kind, KindCorrection]) -> None:
        self._priced = priced
        self._corrections = corrections
        self.num_corrected = 0
        self.num_outside = 0
        """Steps that were larger or smaller than those it was learned from, or of another kind."""

    def step_cost(self, shape: StepShape) -> StepCost:
        """Cost of one step of this shape, never below its floors; outside the range it is as without correction."""
        cost = self._priced.step_cost(shape)
        correction = self._corrections.get(kind_of(shape))
        added = None if correction is None else correction.of(features_of(shape))
        if added is None:
            self.num_outside += 1
            return cost
        self.num_corrected += 1
        return cost._replace(device_ns=max(cost.device_ns + round(added), cost.compute_ns, cost.memory_ns))
