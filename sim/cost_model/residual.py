"""What steps take beyond the sum of their kernels: a constant a type of step, fitted to runs of the same machine.

A sum of kernels leaves out gaps between them and what one leaves in the caches for the next, so the constant may be
negative as well. No step gets faster than its floors, FLOPs and bytes at the device's full speed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ...policies.core.estimator import StepCost, StepShape, StepTimeEstimator
from .analytic import StretchCost
from .profiled import ProfiledStretch

PricedStretch = StretchCost | ProfiledStretch


@dataclass(frozen=True, slots=True)
class Residual:
    """Device time added to every step of a type."""

    decode_ns: int = 0
    """Steps of decodes alone."""
    prefill_ns: int = 0
    """Steps of prefill alone."""
    mixed_ns: int = 0
    """Steps of both."""

    def of(self, shape: StepShape) -> int:
        """What is added to a step of this shape; nothing to an empty one."""
        if not shape.prefill_chunks:
            return self.decode_ns if shape.num_decodes else 0
        return self.mixed_ns if shape.num_decodes else self.prefill_ns


class StretchPricer(StepTimeEstimator, Protocol):
    """A cost model that prices a stretch of decode-only steps at once."""

    def decode_stretch(
        self, num_decodes: int, context_tokens: int, max_context: int, num_steps: int, shared_tokens: int = 0
    ) -> PricedStretch:
        """Costs of `num_steps` steps of the same decodes, whose contexts grow by one each step."""
        ...


class ResidualCostModel:
    """A cost model and a residual on top. Pure, as the model below."""

    def __init__(self, kernels: StretchPricer, residual: Residual) -> None:
        self.kernels = kernels
        self.residual = residual

    def step_cost(self, shape: StepShape) -> StepCost:
        """Cost of one step of this shape; an empty one costs no device time."""
        cost = self.kernels.step_cost(shape)
        return cost._replace(device_ns=max(cost.device_ns + self.residual.of(shape), cost.compute_ns, cost.memory_ns))

    def decode_stretch(
        self, num_decodes: int, context_tokens: int, max_context: int, num_steps: int, shared_tokens: int = 0
    ) -> PricedStretch:
        """Equal, to the nanosecond, to asking for each step alone."""
        cost = self.kernels.decode_stretch(num_decodes, context_tokens, max_context, num_steps, shared_tokens)
        floor = np.maximum(cost.compute_ns, cost.memory_ns)
        return cost._replace(device_ns=np.maximum(cost.device_ns + self.residual.decode_ns, floor))
