"""The work of one GPU kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ...policies.core.model_spec import Dtype

KernelKind = Literal["linear", "attention", "kv_write", "elementwise", "all_reduce"]


@dataclass(frozen=True, slots=True)
class Kernel:
    """What one launch of a kernel computes and moves, on one GPU."""

    name: str
    kind: KernelKind
    """Decides which efficiencies hold."""
    num_launches: int
    """Launches of this size in a step."""
    flops: int = 0
    """Of the tensor cores; elementwise work is bound by its bytes and counts none."""
    num_bytes: int = 0
    """Read and written in the GPU's memory, each operand once."""
    link_bytes: int = 0
    """Size of the tensor that the GPUs reduce."""
    dtype: Dtype = "bf16"
    """Of the operands: which peak FLOP/s holds."""
