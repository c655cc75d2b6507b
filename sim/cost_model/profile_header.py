"""The header of a profile: what was measured on what, and what the fit found; `profile.yaml` in its folder."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from ...policies.core.model_spec import Dtype, ModelSpec
from .fit_section import Fit
from .header_parts import (
    Alpha,
    Count,
    LinearLayer,
    Microseconds,
    Positive,
    Quantity,
    Residual,
    ResidualShare,
    RowsLeftOver,
    Seconds,
    Section,
    Text,
)
from .roofline import Efficiencies

COMPARED = (
    *("hidden_size", "intermediate_size", "num_heads", "num_kv_heads", "head_dim", "vocab_size"),
    *("qk_norm", "dtype", "num_experts", "experts_per_token"),
)
"""Fields of a model that decide how long its kernels take."""


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

    def model(self, num_layers: int = 1) -> ModelSpec:
        """A model of so many layers with these shapes; each launch of a kernel belongs to one."""
        return ModelSpec(num_layers=num_layers, max_position_embeddings=1 << 20, **self.model_dump())

    def difference(self, model: ModelSpec) -> str | None:
        """The first field in which a model differs, in words; None: its kernels take the same time."""
        for field in COMPARED:
            mine, other = getattr(self, field), getattr(model, field)
            if mine != other:
                return f"its {field} is {mine}, that of {model.name} {other}"
        return None


class DataSheet(Section):
    """The fields of the catalog's GPUs; speeds are dense, a link counts both directions together."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    memory_gib: Annotated[float, Field(gt=0, le=1e6)]
    bandwidth_gb_s: Quantity
    bf16_tflop_s: Quantity
    fp8_tflop_s: Quantity | None = None
    """None: no fp8 tensor cores."""
    fp32_tflop_s: Quantity | None = None
    """None: not known, and nothing runs in float32."""
    interconnect_gb_s: Quantity | None = None
    """None: it stands alone."""
    host_link_gb_s: Quantity | None = None
    """To the host's memory; None: not known, and nothing can be swapped there."""


class AttentionLaunches(Section):
    """How the engine launches attention."""

    launches: Literal["fused", "separate"] = "fused"
    """`fused`: prefill and decodes in one launch, which costs more than both apart. `separate`: two launches, which
    add, and each chunk of a prompt is priced by itself."""
    shared_us: Microseconds = 0.0
    """What a further chunk in the same launch does not cost again; only where they are separate."""


FUSED = AttentionLaunches()


class Residuals(Section):
    """Device time of a step beyond its kernels, by what it computes; fitted on whole steps, may be negative.

    `time = (1 + share) x kernels + constant`: a share where each kernel takes longer among the others than timed apart,
    a constant where something is done once a step.
    """

    decode_s: Residual = 0.0
    prefill_s: Residual = 0.0
    mixed_s: Residual = 0.0
    decode_share: ResidualShare = 0.0
    prefill_share: ResidualShare = 0.0
    mixed_share: ResidualShare = 0.0

    def factors(self) -> tuple[float, float, float]:
        """What the kernels of a step of decodes, of prefill, of both are multiplied by."""
        return 1 + self.decode_share, 1 + self.prefill_share, 1 + self.mixed_share

    def added_ns(self) -> tuple[float, float, float]:
        """What comes on top, in nanoseconds."""
        return self.decode_s * 1e9, self.prefill_s * 1e9, self.mixed_s * 1e9


class Host(Section):
    """The host's work on a step; asynchronous scheduling hides it behind the device's."""

    step_s: Seconds = Efficiencies().host_step_s
    request_s: Seconds = Efficiencies().host_request_s


class UnequalContexts(Section):
    """Decodes of unequal contexts: `time = mean + alpha (longest - mean)`, on the curve of equal contexts.

    Beside a prefill the two are one decode of the longest context and one of the mean, alone, else the whole batch.
    Where decodes have launches of their own it is always that, and `decode_us` and `decode_each_us` a decode on top.
    """

    applied: bool = False
    """Whether decodes alone are corrected too. It helped one machine and hurt another: see docs/profiles.md."""
    decode_alpha: Alpha = 0.0
    mixed_alpha: Alpha = 0.0
    decode_us: Microseconds = 0.0
    """What a launch does for unequal contexts whatever they are; only where attention's launches are separate."""
    decode_each_us: Microseconds = 0.0
    """The same for each decode in it."""


class SharedContexts(Section):
    """Decodes that have context in the same KV blocks, of which what is read again may be in a cache of the device.

    `time = time(context) - alpha (time(context) - time(context - shared))` of attention: 0 where reading it again
    takes as long as the first time, 1 where it takes none.
    """

    alpha: Alpha = 0.0


class ProfileHeader(Section):
    """All that a profile says beside its timings."""

    format: Literal[1] = 1
    name: Text
    gpu: Text
    """A name of the catalog: its data sheet gives floors, memory, and what was not measured."""
    data_sheet: DataSheet | None = None
    """Where the catalog has none: what was measured of the device."""
    device: Text
    """What the driver calls it."""
    model: ModelShapes
    tensor_parallel: Positive = 1
    kv_dtype_bytes: Literal[1, 2, 4] = 2
    software: Text
    clock: str | None = None
    """GPU clock while measuring; None: not recorded."""
    threads: Positive | None = None
    """Of a CPU, those that computed."""
    measured_at: str | None = None
    source: Text
    contained: tuple[str, ...] = ()
    """Kernels whose time is within another's timing: `kv_write` in attention's, say."""
    tiles: dict[LinearLayer, Positive] = Field(default_factory=dict)
    """Tokens a tile of each linear layer, in whose steps its time rises; found by the fit."""
    row_groups: dict[LinearLayer, RowsLeftOver] = Field(default_factory=dict)
    """Of a CPU's linear layers, whose rows are multiplied in groups of that many: by rows left over, what a launch
    takes beyond the line through whole groups, in microseconds; found by the fit."""
    attention: AttentionLaunches = FUSED
    graph_sizes: tuple[Positive, ...] | None = None
    """Batch sizes with a CUDA graph, to which steps of decodes alone are padded; empty: nothing is padded. None: steps
    are padded as those of the scenario's engine are."""
    logits: Literal["scheduled", "sampled"] = "scheduled"
    """Whose rows pass lm_head and sampler: those of all requests in a step, as in vLLM and SGLang, which throw away
    what comes of a prompt's unfinished chunk; or only of those that get a token."""
    out_of_memory: tuple[str, ...] = ()
    """Steps that the device had no memory for while measuring."""
    host: Host = Host()
    residual: Residuals = Residuals()
    unequal_contexts: UnequalContexts = UnequalContexts()
    shared_contexts: SharedContexts = SharedContexts()
    fit: Fit | None = None
    """None: a table that has not been fitted."""

    @field_validator("row_groups")
    @classmethod
    def _grouped_by_threads_and_not_tiled(
        cls, row_groups: dict[LinearLayer, RowsLeftOver], info: ValidationInfo
    ) -> dict[LinearLayer, RowsLeftOver]:
        if both := [kernel for kernel in row_groups if kernel in info.data.get("tiles", {})]:
            raise ValueError(f"{both[0]} has tiles as well; a layer has one of them")
        if row_groups and "threads" in info.data and info.data["threads"] is None:
            raise ValueError("only a CPU's rows are multiplied in groups, and the header names no threads")
        return row_groups
