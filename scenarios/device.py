"""The device of a run on the real engine, as the memory budget and the defaults by GPU see it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from ..policies.core.gpu_spec import GpuSpec
from ..policies.core.model_spec import ModelSpec

RealDtype = Literal["fp32", "bf16", "fp16"]


@dataclass(frozen=True, slots=True)
class Device:
    """What takes the place of the scenario's GPU."""

    name: str
    memory_bytes: int
    """That the run may use in all."""
    dtype: RealDtype
    """Of weights, activations and KV."""

    def gpu(self, sheet: GpuSpec) -> GpuSpec:
        """The scenario's GPU with this name and memory. Its speeds mean nothing: steps are measured."""
        return replace(sheet, name=self.name, memory_bytes=self.memory_bytes)

    def model(self, model: ModelSpec) -> ModelSpec:
        """The model with numbers as wide as on this device."""
        return replace(model, dtype="fp32") if self.dtype == "fp32" else model
