"""Root mean square norms as Triton kernels: of a row, of a row and its residual, of the heads of queries and keys.

    rms_norm      x [T, hidden] -> [T, hidden]; one program a row
    add_rms_norm  x, residual [T, hidden] -> [T, hidden]; one program a row; the residual is the rounded sum
    qk_norm       q [T, H, D], k [T, KVH, D], in place; one program a token; rows may stand apart, a row is contiguous

All arithmetic is in fp32 and rounded once; dtypes fp32, bf16, fp16. A row of up to 64k elements is held in registers.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _normed(x, weight, eps, hidden: tl.constexpr):
    """`x / sqrt(mean(x^2) + eps) * weight` of rows [rows, BLOCK] fp32, zeros past `hidden`."""
    mean = tl.sum(x * x, axis=1) / hidden
    return x * tl.rsqrt(mean + eps)[:, None] * weight


@triton.jit
def _rms_norm(
    x_ptr, residual_ptr, weight_ptr, out_ptr, x_stride, residual_stride, eps,
    hidden: tl.constexpr, BLOCK: tl.constexpr, ADDS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)[None, :]
    inside = columns < hidden
    x = tl.load(x_ptr + row * x_stride + columns, mask=inside, other=0.0).to(tl.float32)
    if ADDS:
        residual = residual_ptr + row * residual_stride + columns
        x += tl.load(residual, mask=inside, other=0.0).to(tl.float32)
        rounded = x.to(residual_ptr.dtype.element_ty)
        tl.store(residual, rounded, mask=inside)
        x = rounded.to(tl.float32)
    weight = tl.load(weight_ptr + columns, mask=inside, other=0.0).to(tl.float32)
    normed = _normed(x, weight, eps, hidden)
    tl.store(out_ptr + row * hidden + columns, normed.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _qk_norm(
    q_ptr, k_ptr, q_weight_ptr, k_weight_ptr, q_stride, k_stride, eps,
    H: tl.constexpr, KVH: tl.constexpr, D: tl.constexpr, HEADS: tl.constexpr, KV_HEADS: tl.constexpr,
):  # fmt: skip
    token = tl.program_id(0).to(tl.int64)
    _heads_normed(q_ptr + token * q_stride, q_weight_ptr, eps, H, D, HEADS)
    _heads_normed(k_ptr + token * k_stride, k_weight_ptr, eps, KVH, D, KV_HEADS)


@triton.jit
def _heads_normed(x_ptr, weight_ptr, eps, heads: tl.constexpr, D: tl.constexpr, HEADS: tl.constexpr):
    """Norms the heads of one token in place."""
    rows = tl.arange(0, HEADS)[:, None]
    columns = tl.arange(0, D)[None, :]
    places = x_ptr + rows * D + columns
    x = tl.load(places, mask=rows < heads, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + columns).to(tl.float32)
    tl.store(places, _normed(x, weight, eps, D).to(x_ptr.dtype.element_ty), mask=rows < heads)


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """The norm of each row of x [T, hidden]; rows may stand apart."""
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    _launch(x, x, weight, out, eps, adds=False)
    return out


def add_rms_norm(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Adds x [T, hidden] to the residual, in place, and returns the norm of what then stands there."""
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    _launch(x, residual, weight, out, eps, adds=True)
    return out


def _launch(x: Tensor, residual: Tensor, weight: Tensor, out: Tensor, eps: float, adds: bool) -> None:
    num_tokens, hidden = x.shape
    if num_tokens == 0:
        return
    block = triton.next_power_of_2(hidden)
    _rms_norm[(num_tokens,)](
        x, residual, weight, out, x.stride(0), residual.stride(0), eps,
        hidden=hidden, BLOCK=block, ADDS=adds, num_warps=min(16, max(1, block // 512)),
    )  # fmt: skip


def qk_norm(q: Tensor, k: Tensor, q_weight: Tensor, k_weight: Tensor, eps: float) -> None:
    """The norm of each head of q [T, H, D] and k [T, KVH, D], in place; both may be views of one row a token."""
    num_tokens, num_heads, head_dim = q.shape
    if num_tokens == 0:
        return
    num_kv_heads = k.shape[1]
    _qk_norm[(num_tokens,)](
        q, k, q_weight, k_weight, q.stride(0), k.stride(0), eps,
        H=num_heads, KVH=num_kv_heads, D=head_dim,
        HEADS=triton.next_power_of_2(num_heads), KV_HEADS=triton.next_power_of_2(num_kv_heads), num_warps=4,
    )  # fmt: skip
