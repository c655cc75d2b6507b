"""What a GPU's data sheet says."""

from __future__ import annotations

from dataclasses import dataclass

from .model_spec import Dtype


@dataclass(frozen=True, slots=True)
class GpuSpec:
    """One GPU, at its data sheet's full speed."""

    name: str
    memory_bytes: int
    """What the driver reports as usable in all: a little less than the data sheet's."""
    bandwidth_bytes_per_s: float
    bf16_flop_per_s: float
    """Dense, without sparsity."""
    fp8_flop_per_s: float | None = None
    """Dense; None: no fp8 tensor cores."""
    interconnect_bytes_per_s: float | None = None
    """To the other GPUs of the machine, both directions together; None: it stands alone."""
    host_link_bytes_per_s: float | None = None
    """To the host's memory, both directions together, as data sheets count; None: the sheet does not say."""

    def __post_init__(self) -> None:
        speeds = [self.bandwidth_bytes_per_s, self.bf16_flop_per_s]
        others = (self.fp8_flop_per_s, self.interconnect_bytes_per_s, self.host_link_bytes_per_s)
        speeds += [speed for speed in others if speed is not None]
        if self.memory_bytes <= 0 or not all(0 < speed < float("inf") for speed in speeds):
            raise ValueError(f"{self.name}: memory and speeds must be above zero")

    def peak_flop_per_s(self, dtype: Dtype) -> float:
        """Dense FLOP/s of the tensor cores for weights of this type; ValueError where there are none.

        int4 weights are multiplied in bf16: kernels turn them back on the way.
        """
        if dtype == "fp32":
            raise ValueError(f"{self.name}: the data sheet does not say how fast fp32 is; choose another precision")
        if dtype != "fp8":
            return self.bf16_flop_per_s
        if self.fp8_flop_per_s is None:
            raise ValueError(f"{self.name} has no fp8 tensor cores; choose weights of another precision")
        return self.fp8_flop_per_s
