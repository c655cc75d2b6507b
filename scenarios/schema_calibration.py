"""The keys of `hardware` that a fit to measured runs fills in: efficiencies of a GPU, a residual a step."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ..sim.cost_model.residual import Residual
from ..sim.cost_model.roofline import Efficiencies
from .section import Seconds, Section

Share = Annotated[float, Field(gt=0, le=1)]
Shift = Annotated[float, Field(ge=-1, le=1)]


class EfficiencySettings(Section):
    """Shares of the data sheet's peaks, and overheads; None keeps the analytic model's own (docs/cost-model.md)."""

    weights: Share | None = None
    kv: Share | None = None
    bf16: Share | None = None
    fp8: Share | None = None
    attention: Share | None = None
    kernel_gap_s: Seconds | None = None
    all_reduce_latency_s: Seconds | None = None
    all_reduce_bytes_per_s: Annotated[float, Field(gt=0, le=1e15)] | None = None
    host_step_s: Seconds | None = None
    host_request_s: Seconds | None = None

    def efficiencies(self) -> Efficiencies:
        """The analytic model's efficiencies with these in place."""
        return Efficiencies(**self.model_dump(exclude_none=True))


class ResidualSettings(Section):
    """What a step of either type takes beyond its kernels, or less than they; fitted to runs of the same machine."""

    decode_s: Shift = 0.0
    """Steps of decodes alone."""
    prefill_s: Shift = 0.0
    """Steps of prefill alone."""
    mixed_s: Shift = 0.0
    """Steps of both."""

    def residual(self) -> Residual:
        """In the cost model's nanoseconds."""
        return Residual(round(self.decode_s * 1e9), round(self.prefill_s * 1e9), round(self.mixed_s * 1e9))
