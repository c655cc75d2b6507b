"""A scenario as the YAML states it: model, hardware, engine, policies, workload, SLO, predictions, front end, run."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Discriminator, Field, PrivateAttr, Tag, model_validator
from pydantic_core import PydanticCustomError

from .schema_calibration import EfficiencySettings, ResidualSettings
from .schema_engine import Engine
from .schema_vllm import VllmEngine
from .schema_workload import WorkloadSettings
from .section import PositiveSeconds, Seconds, Section

POLICY_KINDS = ("scheduling", "chunk_size", "eviction", "preemption", "batching")


class Hardware(Section):
    """What the engine runs on."""

    gpu: Annotated[str, Field(min_length=1)] | None = None
    """A name that `llmsim list gpus` shows, or the path of a data sheet of one's own, ending in .yaml.

    With a profile it may be left out: the profile names its GPU.
    """
    profile: Annotated[str, Field(min_length=1)] | None = None
    """The path of a fitted profile, which prices the steps; see docs/profiles.md."""
    tensor_parallel: Annotated[int, Field(ge=1, le=1024)] = 1
    efficiencies: EfficiencySettings | None = None
    """In place of what the analytic model takes beforehand."""
    residual: ResidualSettings | None = None
    """Added to what the kernels of a step take."""

    @model_validator(mode="after")
    def _is_given(self) -> Self:
        if self.gpu is None and self.profile is None:
            raise PydanticCustomError("parameter", "is required", {"key": "gpu"})
        if self.efficiencies is not None and self.profile is not None:
            says = "goes with a GPU known by its data sheet; a profile holds measured times"
            raise PydanticCustomError("parameter", says, {"key": "efficiencies"})
        return self


class PolicySpec(Section):
    """A policy's name and its parameters, which the registry checks against the policy's own signature."""

    model_config = ConfigDict(extra="allow")

    name: Annotated[str, Field(min_length=1)]

    @model_validator(mode="after")
    def _parameters_are_finite(self) -> Self:
        for key, value in (self.model_extra or {}).items():
            if isinstance(value, float) and not math.isfinite(value):
                raise PydanticCustomError(
                    "parameter", "must be a finite number, not {value}", {"key": key, "value": value}
                )
        return self

    def spec(self) -> dict[str, object]:
        """Name and parameters as the registry takes them."""
        return self.model_dump()


class Policies(Section):
    """The policies that replace the preset's own; None keeps the preset's."""

    scheduling: PolicySpec | None = None
    chunk_size: PolicySpec | None = None
    eviction: PolicySpec | None = None
    preemption: PolicySpec | None = None
    batching: PolicySpec | None = None

    def given(self) -> dict[str, dict[str, object]]:
        """The policies that the scenario names, by kind."""
        specs = {kind: getattr(self, kind) for kind in POLICY_KINDS}
        return {kind: spec.spec() for kind, spec in specs.items() if spec is not None}


class Slo(Section):
    """Targets that a request must meet to count as goodput; None asks nothing."""

    ttft_s: PositiveSeconds | None = None
    tpot_s: PositiveSeconds | None = None
    itl_s: PositiveSeconds | None = None
    e2e_s: PositiveSeconds | None = None


class OutputLengthPrediction(Section):
    """A predictor of output lengths by its error: the true length times a factor that is log-normal around 1."""

    error: Literal["lognormal"] = "lognormal"
    sigma: Annotated[float, Field(ge=0, le=10)]
    """Of the factor's logarithm: with 0.5 two predictions of three are within 0.6 and 1.65 times the truth; 0 is one
    that knows."""


class Predictions(Section):
    """What policies are told of requests beside what these say; None is nothing."""

    output_length: OutputLengthPrediction | None = None


class Frontend(Section):
    """Time that a request spends outside the engine."""

    network_s: Seconds = 0.0
    tokenize_s: Seconds = 0.0
    detokenize_s: Seconds = 0.0


def _warmup_tag(value: object) -> str:
    return "<auto>" if isinstance(value, str) else "<seconds>"


Warmup = Annotated[
    Annotated[Seconds, Tag("<seconds>")] | Annotated[Literal["auto"], Tag("<auto>")], Discriminator(_warmup_tag)
]


class RunSettings(Section):
    """How the run is carried out."""

    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    cache: Literal["cold", "warm"] = "cold"
    """`cold`: the prefix cache begins empty. `warm`: as a pass of the same traffic, served before, has left it."""
    warmup_s: Warmup = 0.0
    """Requests sent before it are not measured; `auto` finds it by a run of its own (MSER-5 on the TTFTs)."""
    outputs: Literal["forced", "sampled"] = "forced"
    """What the real engine generates (`--engine real`; the simulator knows no tokens and takes no notice). `forced`:
    tokens that stand for the workload's content. `sampled`: what the model says, as long as the workload has it."""


class Scenario(Section):
    """One scenario: everything that a run depends on."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]
    """Names the results folder: letters, digits, dot, dash, underscore."""
    model: Annotated[str, Field(min_length=1)]
    """A name that `llmsim list models` shows, or the path of a Hugging Face config.json."""
    hardware: Hardware
    engine: Engine = VllmEngine()
    policies: Policies = Policies()
    workload: WorkloadSettings
    slo: Slo = Slo()
    predictions: Predictions = Predictions()
    frontend: Frontend = Frontend()
    run: RunSettings = RunSettings()

    _source: Path | None = PrivateAttr(default=None)

    @property
    def source(self) -> Path | None:
        """The YAML it was read from; None where it was made by code."""
        return self._source

    def path_to(self, relative: str) -> Path:
        """A path that the YAML gives, which is relative to the YAML's folder."""
        return (self._source.parent if self._source else Path()) / relative


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a scenario, for editors."""
    return Scenario.model_json_schema()
