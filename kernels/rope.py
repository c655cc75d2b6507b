"""Rotary position embedding as a Triton kernel: queries and keys of a token in one program, in place.

    q [T, H, D], k [T, KVH, D]   fp32, bf16, fp16; views of a fused row allowed, a token's heads stand together
    positions [T] int64          cos_sin [max_positions, D] fp32: D / 2 cosines, then D / 2 sines

Dimension i turns with i + D / 2, in fp32, rounded once. Heads are padded to a power of two and masked.

`qk_norm`, this and the KV write pass over the same rows of q and k; in one kernel they would be read once. They are
apart until a measurement says what that would bring.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _rope(
    q_ptr, k_ptr, positions_ptr, cos_sin_ptr, q_stride, k_stride,
    H: tl.constexpr, KVH: tl.constexpr, D: tl.constexpr, HEADS: tl.constexpr, KV_HEADS: tl.constexpr,
):  # fmt: skip
    token = tl.program_id(0).to(tl.int64)
    angles = cos_sin_ptr + tl.load(positions_ptr + token) * D + tl.arange(0, D // 2)[None, :]
    cos = tl.load(angles)
    sin = tl.load(angles + D // 2)
    _rotated(q_ptr + token * q_stride, cos, sin, H, D, HEADS)
    _rotated(k_ptr + token * k_stride, cos, sin, KVH, D, KV_HEADS)


@triton.jit
def _rotated(x_ptr, cos, sin, heads: tl.constexpr, D: tl.constexpr, HEADS: tl.constexpr):
    """Turns the heads of one token in place."""
    rows = tl.arange(0, HEADS)[:, None]
    inside = rows < heads
    places = x_ptr + rows * D + tl.arange(0, D // 2)[None, :]
    first = tl.load(places, mask=inside, other=0.0).to(tl.float32)
    second = tl.load(places + D // 2, mask=inside, other=0.0).to(tl.float32)
    dtype = x_ptr.dtype.element_ty
    tl.store(places, (first * cos - second * sin).to(dtype), mask=inside)
    tl.store(places + D // 2, (second * cos + first * sin).to(dtype), mask=inside)


def rope(q: Tensor, k: Tensor, positions: Tensor, cos_sin: Tensor) -> None:
    """Rotates q [T, H, D] and k [T, KVH, D] by their positions, in place."""
    num_tokens, num_heads, head_dim = q.shape
    if num_tokens == 0:
        return
    num_kv_heads = k.shape[1]
    _rope[(num_tokens,)](
        q, k, positions, cos_sin, q.stride(0), k.stride(0),
        H=num_heads, KVH=num_kv_heads, D=head_dim,
        HEADS=triton.next_power_of_2(num_heads), KV_HEADS=triton.next_power_of_2(num_kv_heads), num_warps=4,
    )  # fmt: skip
