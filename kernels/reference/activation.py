"""The gated activation of the feed-forward layers, in plain torch."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional


def silu_mul(gate_up: Tensor) -> Tensor:
    """`silu(gate) * up` of gate_up [T, 2 * intermediate], rounded once (SwiGLU: Shazeer 2020, arXiv:2002.05202)."""
    gate, up = gate_up.chunk(2, dim=-1)
    return functional.silu(gate.float()).mul_(up.float()).to(gate_up.dtype)
