"""Rotary position embedding of queries and keys, in plain torch."""

from __future__ import annotations

import torch
from torch import Tensor


def rope(q: Tensor, k: Tensor, positions: Tensor, cos_sin: Tensor) -> None:
    """Rotates q [T, H, D] and k [T, KVH, D] in place (Su et al. 2021, arXiv:2104.09864).

    positions  [T] int64
    cos_sin    [max_positions, D] fp32: D / 2 cosines, then D / 2 sines; dimension i turns with i + D / 2
    """
    cos, sin = cos_sin[positions].unsqueeze(1).chunk(2, dim=-1)
    _rotate(q, cos, sin)
    _rotate(k, cos, sin)


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> None:
    """Turns each pair of x [T, heads, D] by its angle; cos and sin are [T, 1, D / 2]."""
    first, second = x.float().chunk(2, dim=-1)
    x.copy_(torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1))
