"""How long a kernel takes on a GPU known only by its data sheet, at stated shares of its peaks."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ...policies.core.gpu_spec import GpuSpec
from .kernel import Kernel


@dataclass(frozen=True, slots=True)
class Efficiencies:
    """Shares of a data sheet's peak, and overheads that it does not show.

    Chosen before any figure that checks them, and not fitted. docs/cost-model.md says where each comes from.
    """

    weights: float = 0.80
    """Of the bandwidth: linear layers and elementwise kernels."""
    kv: float = 0.75
    """Of the bandwidth: attention and the KV write."""
    bf16: float = 0.65
    """Of the bf16 FLOP/s: linear layers with bf16 or int4 weights. (Of the fp32 FLOP/s where all is in fp32.)"""
    fp8: float = 0.55
    """Of the FLOP/s: linear layers with fp8 weights."""
    attention: float = 0.45
    """Of the same FLOP/s: attention."""
    kernel_gap_s: float = 0.5e-6
    """Added by every launch: in a CUDA graph a 2.9 us kernel takes 3.4 us (NVIDIA's blog on them, 2019)."""
    all_reduce_latency_s: float = 12e-6
    all_reduce_bytes_per_s: float = 300e9
    """Size of the tensor over the time; never above one direction of the GPU's link."""
    host_link: float = 0.80
    """Of one direction of the link to host memory: KV that is swapped."""
    host_step_s: float = 1e-3
    """Host work of any step: scheduling, preparing inputs, reading the tokens back."""
    host_request_s: float = 8e-6
    """Host work of each scheduled request on top."""

    def __post_init__(self) -> None:
        for name in ("weights", "kv", "bf16", "fp8", "attention", "host_link"):
            if not 0 < getattr(self, name) <= 1:
                raise ValueError(f"efficiency {name} is {getattr(self, name)}; it must be above 0, at most 1")
        for field in fields(self):
            if not 0 <= getattr(self, field.name) < float("inf"):
                raise ValueError(f"{field.name} is {getattr(self, field.name)}; it must not be negative")
        if self.all_reduce_bytes_per_s == 0:
            raise ValueError("all_reduce_bytes_per_s is 0; it must be above 0")


@dataclass(frozen=True, slots=True)
class Roofline:
    """Prices one launch of a kernel, in seconds."""

    gpu: GpuSpec
    efficiencies: Efficiencies

    def compute_floor_s(self, kernel: Kernel) -> float:
        """Its FLOPs at the full peak."""
        return kernel.flops / self.gpu.peak_flop_per_s(kernel.dtype)

    def memory_floor_s(self, kernel: Kernel) -> float:
        """Its bytes at the full bandwidth."""
        return kernel.num_bytes / self.gpu.bandwidth_bytes_per_s

    def compute_s(self, kernel: Kernel) -> float:
        """Its FLOPs at the stated efficiency."""
        share = self.efficiencies
        if kernel.kind == "attention":
            return self.compute_floor_s(kernel) / share.attention
        return self.compute_floor_s(kernel) / (share.fp8 if kernel.dtype == "fp8" else share.bf16)

    def memory_s(self, kernel: Kernel) -> float:
        """Its bytes at the stated efficiency."""
        touches_kv = kernel.kind in ("attention", "kv_write")
        return self.memory_floor_s(kernel) / (self.efficiencies.kv if touches_kv else self.efficiencies.weights)

    def link_s(self, kernel: Kernel) -> float:
        """Latency and transfer of an all-reduce, nothing for other kernels; ValueError without a link."""
        if kernel.kind != "all_reduce":
            return 0.0
        link = self.gpu.interconnect_bytes_per_s
        if link is None:
            raise ValueError(f"{self.gpu.name} has no link to other GPUs; tensor_parallel must be 1")
        rate = min(self.efficiencies.all_reduce_bytes_per_s, link / 2)
        return self.efficiencies.all_reduce_latency_s + kernel.link_bytes / rate

    def launch_s(self, kernel: Kernel) -> float:
        """From the launch to the next one."""
        work = max(self.compute_s(kernel), self.memory_s(kernel))
        return work + self.link_s(kernel) + self.efficiencies.kernel_gap_s
