"""What was measured of a run of a real engine, whatever wrote it down: requests, a time series, how it was set up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ...sim.columns import Floats

BLOCK_TOKENS = 16
"""Tokens that a block id of a prompt stands for."""


@dataclass(frozen=True, slots=True)
class MeasuredRequest:
    """One request. Times are seconds since the first arrival of the run; None: not known."""

    id: str
    prompt_tokens: int
    output_tokens: int
    arrival_s: float
    """When the client sent it, or the server took it in: what TTFT counts from."""
    intended_s: float | None = None
    """When the workload meant it to arrive, since the first was meant to."""
    queued_s: float | None = None
    """When the scheduler learned of it."""
    scheduled_s: float | None = None
    """When the first step that computes something for it was planned."""
    first_token_s: float | None = None
    last_token_s: float | None = None
    itls_s: tuple[float, ...] | None = None
    """Gaps between its output chunks."""
    block_ids: tuple[int, ...] | None = None
    """Names of its prompt's blocks of 16 tokens, the last one partial: equal ids are equal prefixes."""


@dataclass(frozen=True, slots=True)
class MeasuredSeries:
    """What the engine logged at regular times; arrays of one length."""

    time_s: Floats
    """Since the first arrival."""
    running: Floats
    waiting: Floats
    kv_usage: Floats | None
    """Share of the KV blocks in use, 0 to 1; None: not recorded."""


@dataclass(frozen=True, slots=True)
class RunSetup:
    """How the engine ran, as far as the run says; None: it does not."""

    preset: str | None = None
    """`vllm` or `sglang`."""
    model: str | None = None
    """As the engine was told: a name on Hugging Face, or a path."""
    gpu: str | None = None
    """As the driver or the run's author calls it."""
    tensor_parallel: int | None = None
    engine: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the engine under its own names."""


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """A run of a real engine."""

    source: Path
    requests: tuple[MeasuredRequest, ...]
    """In order of arrival, the first at time 0."""
    setup: RunSetup = RunSetup()
    series: MeasuredSeries | None = None
    assumptions: tuple[str, ...] = ()
    """What had to be assumed since the run does not say it: sentences for people."""

    def times(self, name: str) -> Floats:
        """A time of every request, NaN where it is not known."""
        return np.array([getattr(request, name) for request in self.requests], dtype=np.float64)

    @property
    def output_tokens(self) -> Floats:
        """Output tokens of every request."""
        return np.array([request.output_tokens for request in self.requests], dtype=np.float64)

    @property
    def shares_content(self) -> bool:
        """Whether it is known what prompts have in common."""
        return all(request.block_ids is not None for request in self.requests)
