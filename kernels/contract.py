"""What the engine asks of its kernels, whichever backend computes them.

    T           tokens of a step, S sequences with one token each, C chunks of prompts
    H, KVH      query heads, KV heads (H a multiple of KVH); D a head's dimension (64 or 128)
    R           rows of the block tables: one a running sequence, at a place that it keeps
    k_cache     [num_blocks, KVH, block_size, D], of one layer; v_cache likewise
    block_tables  [R, max_blocks] int32: row r names the blocks of its sequence in order of tokens; 0 past the end
    slots       [T] int64: block * block_size + offset in it; -1: nothing is written

Block 0 belongs to nobody. Activations, weights and cache are of one dtype: bf16, fp16 or fp32. Sums are taken in fp32.
"""

from __future__ import annotations

from typing import Protocol

from torch import Tensor


class Kernels(Protocol):
    """One backend: `torch` anywhere, `triton` on a GPU. Nothing is checked here that a step would pay for."""

    name: str
    waits: bool
    """Whether some of them wait for the device: then no CUDA graph can hold them."""

    def rms_norm(self, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        """`x / sqrt(mean(x^2) + eps) * weight` over the last axis of x [T, hidden]; a new tensor."""
        ...

    def add_rms_norm(self, x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> Tensor:
        """Adds x [T, hidden] to `residual`, in place; returns the sum's `rms_norm`."""
        ...

    def qk_norm(self, q: Tensor, k: Tensor, q_weight: Tensor, k_weight: Tensor, eps: float) -> None:
        """`rms_norm` of each head of q [T, H, D] and k [T, KVH, D], in place. Both may be views with a row stride."""
        ...

    def rope(self, q: Tensor, k: Tensor, positions: Tensor, cos_sin: Tensor) -> None:
        """Rotates q [T, H, D] and k [T, KVH, D] by their positions [T] int64, in place; views are allowed.

        cos_sin [max_positions, D] fp32: cosines, then sines, of D / 2 angles. Dimension i pairs with i + D / 2.
        """
        ...

    def write_kv(self, k: Tensor, v: Tensor, k_cache: Tensor, v_cache: Tensor, slots: Tensor) -> None:
        """Puts k and v [T, KVH, D] (views allowed) at their slots of the cache."""
        ...

    def silu_mul(self, gate_up: Tensor) -> Tensor:
        """`silu(gate) * up` of gate_up [T, 2 * intermediate]; returns [T, intermediate]."""
        ...

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
        """Attention of one query token a sequence: q [S, H, D] (a view is allowed) -> [S, H, D].

        rows [S] int32 says which row of the block tables is whose; context_lens [S] int32 counts the tokens attended
        to, this one included. A context of 0 (a padded row of a graph) gives zeros.
        """
        ...

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
        """Causal attention of chunks over all that their sequences have in the cache: q [T, H, D] -> [T, H, D].

        Chunk c is the tokens query_starts[c] .. query_starts[c + 1] ([C + 1] int32), the last ones of its
        context_lens[c] ([C] int32), whose keys and values have been written. rows [C] int32 as in `decode_attention`.
        """
        ...

    def greedy(self, logits: Tensor) -> Tensor:
        """The likeliest token of each row of logits [S, vocab]: [S] int64, the first of equals; a NaN is the least."""
        ...

    def sample(
        self,
        logits: Tensor,
        temperatures: Tensor,
        top_ks: Tensor,
        top_ps: Tensor,
        seeds: Tensor,
        positions: Tensor,
    ) -> Tensor:
        """A token for each row of logits [S, vocab]: [S] int64.

        temperatures [S] fp32 (0: greedy), top_ks [S] int32 (0: all), top_ps [S] fp32 (1: all): the top_k likeliest,
        of them the fewest that hold top_p of the probability; equals of the last one kept are kept too. The draw
        depends on the row's seed [S] int64 and its position [S] int64 alone, so that order and company in a batch
        change nothing, and every backend draws the same token.
        """
        ...
