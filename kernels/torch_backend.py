"""The backend in plain torch: the one of CPUs, and of GPUs that triton does not serve."""

from __future__ import annotations

from torch import Tensor

from .attention import reference as attention
from .reference import activation, kv_write, norm, rope, sampling


class TorchKernels:
    """`Kernels` of plain torch operations; some of them wait for the device, so they stand in no CUDA graph."""

    name = "torch"
    waits = True

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
        return attention.decode_attention(q, k_cache, v_cache, block_tables, rows, context_lens, scale)

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
        return attention.extend_attention(
            q, k_cache, v_cache, block_tables, rows, query_starts, context_lens, max_query_len, scale
        )

    def greedy(self, logits: Tensor) -> Tensor:
        """The likeliest token of each row."""
        return sampling.greedy(logits)

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
        return sampling.sample(logits, temperatures, top_ks, top_ps, seeds, positions)
