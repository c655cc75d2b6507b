"""How long KV takes between GPU and host memory."""

from __future__ import annotations

from dataclasses import dataclass

from ...policies.core.gpu_spec import GpuSpec
from .roofline import Efficiencies


@dataclass(frozen=True, slots=True)
class HostLink:
    """One GPU's link to the host: PCIe, or NVLink-C2C.

    Blocks are copied on the compute stream, as vLLM V0's `swap_blocks` did: neither the step's kernels nor copies the
    other way overlap with them. Each of several GPUs has a link of its own and moves its share of the KV.
    """

    block_bytes: int
    """Of a KV block on one GPU."""
    bytes_per_s: int
    """In one direction, as reached."""

    @classmethod
    def of(cls, gpu: GpuSpec, block_bytes: int, efficiencies: Efficiencies | None = None) -> HostLink:
        """By data sheet, at the stated share of one direction. ValueError where the sheet names no link."""
        if gpu.host_link_bytes_per_s is None:
            raise ValueError(f"{gpu.name} has no link to host memory in its data sheet: host_link_gb_s")
        share = (efficiencies or Efficiencies()).host_link
        return cls(block_bytes, max(1, round(gpu.host_link_bytes_per_s / 2 * share)))

    def copy_ns(self, num_blocks: int) -> int:
        """Nanoseconds for so many blocks, rounded up."""
        return -(-num_blocks * self.block_bytes * 10**9 // self.bytes_per_s)
