"""What the command line says of the real engine: where, by what, how exactly, in which time."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import inf
from pathlib import Path


class Kernels(StrEnum):
    """What computes; `auto` is triton on a GPU, torch elsewhere."""

    AUTO = "auto"
    TRITON = "triton"
    TORCH = "torch"


class Clock(StrEnum):
    """`wall`: requests come when they come. `virtual`: steps last as long as measured, idle time passes at once."""

    WALL = "wall"
    VIRTUAL = "virtual"


class Dtype(StrEnum):
    """Of weights, activations and KV; `auto` is the scenario's, or fp32 on a CPU and bf16 on a GPU."""

    AUTO = "auto"
    FP32 = "fp32"
    BF16 = "bf16"
    FP16 = "fp16"


@dataclass(frozen=True, slots=True)
class RealOptions:
    """The options of a run on the real engine. Raises ValueError for a choice that there is not."""

    device: str = "auto"
    """`cpu`, `cuda`, `cuda:1`, or `auto`: a GPU where there is one."""
    kernels: Kernels = Kernels.AUTO
    clock: Clock = Clock.WALL
    dtype: Dtype = Dtype.AUTO
    model_path: Path | None = None
    """A folder with config.json and safetensors, in place of the scenario's model."""
    device_memory_gib: float | None = None
    """That the run may use in all; None: a GPU's whole memory, a cautious share of a CPU's."""
    threads: int | None = None
    """Of a CPU, those that compute; None: torch's own. In virtual time one alone is timed while it has a processor."""

    def __post_init__(self) -> None:
        for choices, given in ((Kernels, self.kernels), (Clock, self.clock), (Dtype, self.dtype)):
            choices(given)  # notebooks give plain text
        if self.device_memory_gib is not None and not 0 < self.device_memory_gib < inf:
            raise ValueError(f"device_memory_gib: {self.device_memory_gib} is out of range; above 0")
