"""The backend of Triton kernels, for GPUs of NVIDIA and AMD."""

from __future__ import annotations

import torch
from torch import Tensor

from . import activation, kv_write, norm, rope
from .attention import decode, extend
from .attention.decode_plan import DecodeWorkspace
from .sampling import draw, greedy

SMALLEST_WORKSPACE = 256
"""Sequences; a larger batch gets a workspace of the next power of two."""


class TritonKernels:
    """`Kernels` that never wait for the device and allocate by shapes alone, so that all may stand in CUDA graphs.

    One stream's: decode attention keeps a workspace for each model and size of batch, which graphs remember the
    addresses of; so none is ever given back.
    """

    name = "triton"
    waits = False

    def __init__(self) -> None:
        self._workspaces: dict[tuple[torch.device, torch.dtype, int, int, int, int], DecodeWorkspace] = {}

    def rms_norm(self, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        """The norm of x [T, hidden]."""
        return norm.rms_norm(x, weight, eps)

    def add_rms_norm(self, x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> Tensor:
        """Adds x to the residual; the norm of the sum."""
        return norm.add_rms_norm(x, residual, weight, eps)

    def qk_norm(self, q: Tensor, k: Tensor, q_weight: Tensor, k_weight: Tensor, eps: float) -> None:
        """The norm of each head, in place."""
        norm.qk_norm(q, k, q_weight, k_weight, eps)

    def rope(self, q: Tensor, k: Tensor, positions: Tensor, cos_sin: Tensor) -> None:
        """Rotates q and k, in place."""
        rope.rope(q, k, positions, cos_sin)

    def write_kv(self, k: Tensor, v: Tensor, k_cache: Tensor, v_cache: Tensor, slots: Tensor) -> None:
        """Puts k and v at their slots."""
        kv_write.write_kv(k, v, k_cache, v_cache, slots)

    def silu_mul(self, gate_up: Tensor) -> Tensor:
        """`silu(gate) * up`."""
        return activation.silu_mul(gate_up)

    def decode_attention(
        self,
        q: Tensor,
        k_cache: Tensor,
        v_cache: Tensor,
        block_tables: Tensor,
        rows: Tensor,
        context_lens: Tensor,
        scale: float,
    ) -> Tensor:
        """Attention of one token a sequence."""
        workspace = self._workspace(q, k_cache.shape[1])
        return decode.decode_attention(q, k_cache, v_cache, block_tables, rows, context_lens, scale, workspace)

    def extend_attention(
        self,
        q: Tensor,
        k_cache: Tensor,
        v_cache: Tensor,
        block_tables: Tensor,
        rows: Tensor,
        query_starts: Tensor,
        context_lens: Tensor,
        max_query_len: int,
        scale: float,
    ) -> Tensor:
        """Causal attention of chunks."""
        return extend.extend_attention(
            q, k_cache, v_cache, block_tables, rows, query_starts, context_lens, max_query_len, scale
        )

    def greedy(self, logits: Tensor) -> Tensor:
        """The likeliest token of each row."""
        return greedy.greedy(logits)

    def sample(
        self,
        logits: Tensor,
        temperatures: Tensor,
        top_ks: Tensor,
        top_ps: Tensor,
        seeds: Tensor,
        positions: Tensor,
    ) -> Tensor:
        """A token of each row, drawn where it has a temperature."""
        return draw.sample(logits, temperatures, top_ks, top_ps, seeds, positions)

    def _workspace(self, q: Tensor, num_kv_heads: int) -> DecodeWorkspace:
        """What decode attention keeps for queries of this shape, made where there is none yet."""
        num_sequences, num_heads, head_dim = q.shape
        room = max(SMALLEST_WORKSPACE, 1 << (num_sequences - 1).bit_length())
        key = (q.device, q.dtype, num_heads, num_kv_heads, head_dim, room)
        if key not in self._workspaces:
            self._workspaces[key] = DecodeWorkspace.allocate(room, num_heads, num_kv_heads, head_dim, q.dtype, q.device)
        return self._workspaces[key]
