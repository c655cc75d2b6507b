"""Paged attention in plain torch: what the Triton kernels are held against, and the backend where there is no GPU.

Shapes and letters are those of `kernels.contract`. Whatever the dtype of the cache, all is computed in fp32 and rounded
once, at the end. Lengths are read on the host, so neither function belongs in a CUDA graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

_MOST_PADDED_TOKENS = 1 << 12
"""Of one padded batch: bounds the copy of its keys, 16 MiB with 8 KV heads of 128, which caches hold."""
_QUERY_TILE = 512
"""Query tokens masked at a time: bounds the mask, 64 MiB over a context of 128k."""


def decode_attention(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    block_tables: Tensor,
    rows: Tensor,
    context_lens: Tensor,
    scale: float,
) -> Tensor:
    """Attention of one query token a sequence, as `Kernels.decode_attention` says."""
    out = torch.zeros(q.shape, dtype=q.dtype, device=q.device)
    lengths: list[int] = context_lens.tolist()
    for members in _alike(lengths):
        index = torch.tensor(members, device=q.device)
        blocks = block_tables[rows[index].long(), : _num_blocks(lengths[members[0]], k_cache)]
        out[index] = _decode_padded(q[index], k_cache, v_cache, blocks, context_lens[index], scale)
    return out


def extend_attention(
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
    """Causal attention of chunks over their cached contexts, as `Kernels.extend_attention` says."""
    out = torch.zeros(q.shape, dtype=q.dtype, device=q.device)
    starts: list[int] = query_starts.tolist()
    for (start, end), row, length in zip(pairwise(starts), rows.tolist(), context_lens.tolist(), strict=True):
        if start < end:
            blocks = block_tables[row, : _num_blocks(length, k_cache)]
            keys, values = (_gathered(cache, blocks)[:, :length] for cache in (k_cache, v_cache))
            out[start:end] = _causal(q[start:end], keys, values, scale)
    return out


def _alike(lengths: list[int]) -> Iterator[list[int]]:
    """Sequences in batches worth padding, the longest first: none is shorter than half of its batch's longest.

    Sequences without context are in none.
    """
    batch: list[int] = []
    longest = 0
    for member in sorted((m for m, length in enumerate(lengths) if length), key=lambda m: -lengths[m]):
        if batch and (2 * lengths[member] < longest or (len(batch) + 1) * longest > _MOST_PADDED_TOKENS):
            yield batch
            batch = []
        if not batch:
            longest = lengths[member]
        batch.append(member)
    if batch:
        yield batch


def _decode_padded(
    q: Tensor, k_cache: Tensor, v_cache: Tensor, blocks: Tensor, context_lens: Tensor, scale: float
) -> Tensor:
    """Decode attention of sequences padded to `blocks` [S, most blocks]; past its context a sequence sees nothing."""
    num_sequences, num_heads, head_dim = q.shape
    num_kv_heads = k_cache.shape[1]
    keys, values = (_gathered(cache, blocks.flatten()) for cache in (k_cache, v_cache))
    unused = torch.arange(keys.shape[1] // num_sequences, device=q.device) >= context_lens[:, None]
    # Zeroed rather than given no weight: an unused slot may hold anything, and 0 * NaN is NaN.
    values.index_fill_(1, unused.flatten().nonzero()[:, 0], 0.0)
    keys, values = (taken.view(num_kv_heads, num_sequences, -1, head_dim) for taken in (keys, values))
    grouped = (q.float() * scale).view(num_sequences, num_kv_heads, -1, head_dim).transpose(0, 1)
    scores = (grouped @ keys.transpose(2, 3)).masked_fill_(unused[None, :, None], -torch.inf)
    out = scores.softmax(-1) @ values
    return out.transpose(0, 1).reshape(num_sequences, num_heads, head_dim).to(q.dtype)


def _causal(q: Tensor, keys: Tensor, values: Tensor, scale: float) -> Tensor:
    """Attention of q [n, H, D], the last n tokens of a sequence, over its keys and values [KVH, length, D] in fp32."""
    num_queries, length = q.shape[0], keys.shape[1]
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    for start in range(0, num_queries, _QUERY_TILE):
        end = min(start + _QUERY_TILE, num_queries)
        seen = length - num_queries + end
        positions = torch.arange(seen - (end - start), seen, device=q.device)
        mask = torch.arange(seen, device=q.device) <= positions[:, None]
        tile = q[None, start:end].transpose(1, 2).float()
        attended = scaled_dot_product_attention(
            tile, keys[None, :, :seen], values[None, :, :seen], attn_mask=mask, scale=scale, enable_gqa=True
        )
        out[start:end] = attended[0].transpose(0, 1)
    return out


def _gathered(cache: Tensor, blocks: Tensor) -> Tensor:
    """The tokens of `blocks` [n] in fp32, a copy: [KVH, n * block_size, D]."""
    num_kv_heads, head_dim = cache.shape[1], cache.shape[3]
    heads = torch.arange(num_kv_heads, device=cache.device)[:, None]
    # One flat index, so that each head's tokens are copied once, straight to where they are wanted.
    taken = cache.flatten(0, 1).index_select(0, (heads + num_kv_heads * blocks.long()).flatten())
    return taken.view(num_kv_heads, -1, head_dim).float()


def _num_blocks(length: int, cache: Tensor) -> int:
    return -(-length // cache.shape[2])
