"""The header of a profile: what was measured on what, and what the fit found; `profile.yaml` in its folder."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from ...policies.core.model_spec import Dtype, ModelSpec
from .roofline import Efficiencies

Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(ge=0, le=60, allow_inf_nan=False)]
Residual = Annotated[float, Field(ge=-60, le=60, allow_inf_nan=False)]
Text = Annotated[str, Field(min_length=1)]

COMPARED = (
    *("hidden_size", "intermediate_size", "num_heads", "num_kv_heads", "head_dim", "vocab_size"),
    *("qk_norm", "dtype", "num_experts", "experts_per_token"),
)
"""Fields of a model that decide how long its kernels take."""


class Section(BaseModel):
    """A part of the header; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelShapes(Section):
    """The whole model's sizes, before it is divided over GPUs. Its number of layers does not matter to a kernel."""

    name: Text
    hidden_size: Positive
    intermediate_size: Positive
    num_heads: Positive
    num_kv_heads: Positive
    head_dim: Positive
    vocab_size: Positive
    qk_norm: bool = False
    dtype: Dtype = "bf16"
    num_experts: Count = 0
    experts_per_token: Count = 0

    @classmethod
    def of(cls, model: ModelSpec) -> ModelShapes:
        """A model's."""
        return cls(name=model.name, **{field: getattr(model, field) for field in COMPARED})

    def difference(self, model: ModelSpec) -> str | None:
        """The first field in which a model differs, in words; None: its kernels take the same time."""
        for field in COMPARED:
            mine, other = getattr(self, field), getattr(model, field)
            if mine != other:
                return f"its {field} is {mine}, that of {model.name} {other}"
        return None


class Residuals(Section):
    """Device time of a step beyond its kernels, by what it computes; fitted on whole steps, may be negative."""

    decode_s: Residual = 0.0
    prefill_s: Residual = 0.0
    mixed_s: Residual = 0.0


class Host(Section):
    """The host's work on a step; asynchronous scheduling hides it behind the device's."""

    step_s: Seconds = Efficiencies().host_step_s
    request_s: Seconds = Efficiencies().host_request_s


class UnequalContexts(Section):
    """Decodes of unequal contexts: `time = mean + alpha (longest - mean)`, on the curve of equal contexts.

    Beside a prefill the two are one decode of the longest context and one of the mean, alone, else the whole batch.
    """

    applied: bool = False
    """Whether decodes alone are corrected too. It helped one machine and hurt another: see docs/profiles.md."""
    decode_alpha: float = 0.0
    mixed_alpha: float = 0.0


class Errors(Section):
    """|predicted - measured| / measured of points that a curve was not given."""

    points: Positive
    median: float
    p95: float


class KernelFit(Section):
    """A kernel's curve: how many points, from where to where, and how it fared without a fifth of them."""

    points: Positive
    derived: Count = 0
    """Of the points, those that were not measured but made from other sizes' at import."""
    filled: Count = 0
    """Holes of the grid that the fit filled, beside the points."""
    grid: dict[str, tuple[int, int]]
    """Smallest and largest of each shape column; beyond them times are extrapolated."""
    held_out: Errors | None = None
    """None: too few points to leave any out."""
    held_out_mixed: Errors | None = None
    """Of attention, the points that hold prefill and decodes together."""


class Fit(Section):
    """What the fit found."""

    seed: Count
    held_out_share: float
    held_out: Errors
    """Over all kernels."""
    kernels: dict[str, KernelFit]
    unequal_contexts_error: tuple[float, float] | None = None
    """Mean |error| over steps of unequal contexts, without the correction and with it."""


class ProfileHeader(Section):
    """All that a profile says beside its timings."""

    format: Literal[1] = 1
    name: Text
    gpu: Text
    """A name of the catalog: its data sheet gives floors, memory, and what was not measured."""
    device: Text
    """What the driver calls it."""
    model: ModelShapes
    tensor_parallel: Positive = 1
    kv_dtype_bytes: Literal[1, 2] = 2
    software: Text
    clock: str | None = None
    """GPU clock while measuring; None: not recorded."""
    measured_at: str | None = None
    source: Text
    contained: tuple[str, ...] = ()
    """Kernels whose time is within another's timing: `kv_write` in attention's, say."""
    tiles: dict[str, Positive] = {}
    """Tokens a tile of each linear layer, in whose steps its time rises; found by the fit."""
    host: Host = Host()
    residual: Residuals = Residuals()
    unequal_contexts: UnequalContexts = UnequalContexts()
    fit: Fit | None = None
    """None: a table that has not been fitted."""
