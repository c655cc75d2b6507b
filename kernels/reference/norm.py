"""Root mean square norms, in plain torch."""

from __future__ import annotations

import torch
from torch import Tensor


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """`x / sqrt(mean(x^2) + eps) * weight` over the last axis, rounded once (Zhang, Sennrich 2019, arXiv:1910.07467).

    x       [..., hidden]
    weight  [hidden]
    """
    wide = x.float()
    scale = torch.rsqrt(wide.square().mean(-1, keepdim=True).add_(eps))
    return (wide * scale).mul_(weight.float()).to(x.dtype)


def add_rms_norm(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Adds x [T, hidden] to `residual`, in place, and returns the norm of what then stands there."""
    residual.add_(x)
    return rms_norm(residual, weight, eps)


def qk_norm(q: Tensor, k: Tensor, q_weight: Tensor, k_weight: Tensor, eps: float) -> None:
    """The norm of each head of q [T, H, D] and of k [T, KVH, D], in place; weights are [D]."""
    q.copy_(rms_norm(q, q_weight, eps))
    k.copy_(rms_norm(k, k_weight, eps))
