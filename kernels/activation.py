"""The gated activation of the feed-forward layers as a Triton kernel.

    gate_up [T, 2 * intermediate] -> [T, intermediate], `silu(gate) * up` in fp32, rounded once; fp32, bf16, fp16

A program computes a stretch of one row.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 2048


@triton.jit
def _silu_mul(gate_up_ptr, out_ptr, row_stride, intermediate: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < intermediate
    places = gate_up_ptr + row * row_stride + columns
    gate = tl.load(places, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(places + intermediate, mask=inside, other=0.0).to(tl.float32)
    product = gate / (1.0 + tl.exp(-gate)) * up
    tl.store(out_ptr + row * intermediate + columns, product.to(out_ptr.dtype.element_ty), mask=inside)


def silu_mul(gate_up: Tensor) -> Tensor:
    """`silu(gate) * up` of gate_up [T, 2 * intermediate]; rows may stand apart."""
    num_tokens, intermediate = gate_up.shape[0], gate_up.shape[1] // 2
    out = torch.empty((num_tokens, intermediate), dtype=gate_up.dtype, device=gate_up.device)
    if num_tokens:
        grid = (num_tokens, triton.cdiv(intermediate, BLOCK))
        _silu_mul[grid](gate_up, out, gate_up.stride(0), intermediate=intermediate, BLOCK=BLOCK, num_warps=4)
    return out
