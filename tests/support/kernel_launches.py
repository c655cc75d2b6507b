"""Launches for ahead-of-time compilation: every kernel but attention, at the shapes of Llama 3.1 8B, in bf16.

The tensors have no memory (`meta`), so a wrapper that read one on the host would fail: none waits for the device.
"""

from __future__ import annotations

import torch
from torch import Tensor

from llmsim.kernels import activation, kv_write, norm, rope
from llmsim.kernels.sampling import draw, greedy

TOKENS, HEADS, KV_HEADS, HEAD_DIM = 32, 32, 8, 128
HIDDEN, INTERMEDIATE, VOCAB = 4096, 14336, 128256


def bf16(*shape: int) -> Tensor:
    """A tensor that nobody reads."""
    return torch.empty(shape, dtype=torch.bfloat16, device="meta")


def integers() -> Tensor:
    """One int64 a token."""
    return torch.empty(TOKENS, dtype=torch.int64, device="meta")


def fused_heads() -> tuple[Tensor, Tensor, Tensor]:
    """q, k and v as views of one fused row a token."""
    fused = bf16(TOKENS, (HEADS + 2 * KV_HEADS) * HEAD_DIM).unflatten(-1, (-1, HEAD_DIM))
    q, k, v = fused.split((HEADS, KV_HEADS, KV_HEADS), dim=1)
    return q, k, v


def rms_norm() -> None:
    """One row, one program."""
    norm.rms_norm(bf16(TOKENS, HIDDEN), bf16(HIDDEN), 1e-5)


def add_rms_norm() -> None:
    """With the residual."""
    norm.add_rms_norm(bf16(TOKENS, HIDDEN), bf16(TOKENS, HIDDEN), bf16(HIDDEN), 1e-5)


def qk_norm() -> None:
    """Of views."""
    q, k, _ = fused_heads()
    norm.qk_norm(q, k, bf16(HEAD_DIM), bf16(HEAD_DIM), 1e-6)


def rotation() -> None:
    """Of views."""
    q, k, _ = fused_heads()
    rope.rope(q, k, integers(), torch.empty(1024, HEAD_DIM, device="meta"))


def cache_write() -> None:
    """Of views, into blocks of 16."""
    _, k, v = fused_heads()
    k_cache, v_cache = bf16(64, KV_HEADS, 16, HEAD_DIM), bf16(64, KV_HEADS, 16, HEAD_DIM)
    kv_write.write_kv(k, v, k_cache, v_cache, integers())


def silu_mul() -> None:
    """Of Llama's width."""
    activation.silu_mul(bf16(TOKENS, 2 * INTERMEDIATE))


def likeliest() -> None:
    """Of Llama's vocabulary."""
    greedy.greedy(bf16(TOKENS, VOCAB))


def sampled() -> None:
    """Of Gemma's vocabulary, in fp32: more chunks and more bytes than any other."""
    rows = integers()
    draw.sample(bf16(TOKENS, 262_144).float(), rows.float(), rows.int(), rows.float(), rows, rows)


LAUNCHES = {
    "rms_norm": rms_norm,
    "add_rms_norm": add_rms_norm,
    "qk_norm": qk_norm,
    "rope": rotation,
    "write_kv": cache_write,
    "silu_mul": silu_mul,
    "greedy": likeliest,
    "sample": sampled,
}
