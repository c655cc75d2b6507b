"""Extend attention in Triton: chunks of prompts over all that their sequences have in a paged cache, causally.

    q             [T, H, D], rows may stand apart         k_cache, v_cache  [num_blocks, KVH, block_size, D]
    block_tables  [R, max_blocks] int32                   rows, context_lens  [C] int32
    query_starts  [C + 1] int32, the last one T           out  [T, H, D]
    block_size: a power of two; D 64 or 128; any group H / KVH up to `config.rows`

The rows of a tile are query tokens x the query heads of one KV head, token by token, so that a group shares what is
read of K and V and the causal diagonal is met in small steps; a group of 3, 5, 6 or 7 leaves few rows of a tile idle:

    128 rows, group 3:  token 0 head 0, token 0 head 1, token 0 head 2, token 1 head 0, ..., token 41 head 2, -, -

Only tiles of keys on the diagonal are masked, behind a branch that all threads take alike: with a loop of its own the
diagonal would begin with empty buffers. The numbers of blocks are read one tile of keys ahead, as in `decode`. Tiles of
the last tokens, which see the most, start first. Several draft tokens of a sequence are verified in the same way: they
are a chunk. Where chunks are few and short, such as a new message after a long conversation, the keys of a tile are
split among programs and their parts joined.

On sm_90 both products are HGMMA, and that with V runs on while the next copies are issued. Holding it back by one tile
of keys, to run beside the softmax, makes ptxas serialise all HGMMA (a `WARPGROUP.DEPBAR` after each; triton 3.6.0), so
two warpgroups of one program, or two programs, have to hide the softmax instead.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from .blocks import block_of
from .joining import joined
from .tuning import ExtendConfig, extend_config


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
    config: ExtendConfig | None = None,
) -> Tensor:
    """What `Kernels.extend_attention` asks for; the grid is known from shapes, so nothing is read on the host."""
    num_tokens, num_heads, head_dim = q.shape
    num_kv_heads, block_size = k_cache.shape[1], k_cache.shape[2]
    group = num_heads // num_kv_heads
    num_chunks = rows.shape[0]
    out = torch.empty(num_tokens, num_heads, head_dim, dtype=q.dtype, device=q.device)
    if num_tokens == 0:
        return out
    config = config or extend_config(q.device, head_dim, q.dtype, group, num_tokens * num_heads, max_query_len * group)
    # Enough for any lengths: all but the last tile of a chunk are full.
    num_tiles = num_tokens // (config.rows // group) + num_chunks
    splits = config.num_splits
    parts = (splits, num_tokens, num_heads) if splits > 1 else (0, 0, 0)
    total = torch.empty(*parts, head_dim, dtype=torch.float32, device=q.device)
    highest, weight = (torch.empty(parts, dtype=torch.float32, device=q.device) for _ in range(2))
    _extend[(num_kv_heads, num_tiles, splits)](
        q, k_cache, v_cache, block_tables, rows, query_starts, context_lens, out, total, highest, weight, num_tokens,
        num_chunks, q.stride(0), q.stride(1), k_cache.stride(0), k_cache.stride(1), block_tables.stride(0),
        scale * math.log2(math.e),
        GROUP=group, ROWS=config.rows, D=head_dim, BLOCK_SIZE=block_size,
        TILE=config.tile, STAGES=config.num_stages, PRECISION=config.fp32_precision,
        IS_SPLIT=splits > 1, LEAST_SHARE=config.least_share, num_warps=config.num_warps,
    )  # fmt: skip
    if splits > 1:
        _join[(num_heads, num_tokens)](out, total, highest, weight, splits, D=head_dim, SLOTS=16, num_warps=4)
    return out


@triton.jit(do_not_specialize=["num_chunks", "all_tokens"])
def _extend(
    q_ptr, k_cache_ptr, v_cache_ptr, block_tables_ptr, rows_ptr, query_starts_ptr, context_lens_ptr, out_ptr,
    partial_total_ptr, partial_highest_ptr, partial_weight_ptr, all_tokens,
    num_chunks, q_stride, q_head_stride, block_stride, head_stride, table_stride, scale_log2,
    GROUP: tl.constexpr, ROWS: tl.constexpr, D: tl.constexpr, BLOCK_SIZE: tl.constexpr,
    TILE: tl.constexpr, STAGES: tl.constexpr, PRECISION: tl.constexpr,
    IS_SPLIT: tl.constexpr, LEAST_SHARE: tl.constexpr,
):  # fmt: skip
    """One program a KV head and tile of query rows, and part of the keys where these are split."""
    num_tokens = ROWS // GROUP
    kv_head = tl.program_id(0)
    num_heads = tl.num_programs(0) * GROUP
    query_tile = tl.num_programs(1) - 1 - tl.program_id(1)

    # The chunk of this tile is the last one that begins at or before it; chunk c begins at starts[c] // num_tokens + c.
    chunk = 0
    beyond = num_chunks
    while beyond - chunk > 1:
        middle = (chunk + beyond) // 2
        if tl.load(query_starts_ptr + middle) // num_tokens + middle <= query_tile:
            chunk = middle
        else:
            beyond = middle
    query_start = tl.load(query_starts_ptr + chunk)
    query_len = tl.load(query_starts_ptr + chunk + 1) - query_start
    first_token = (query_tile - query_start // num_tokens - chunk) * num_tokens
    if first_token >= query_len:
        return
    length = tl.load(context_lens_ptr + chunk)
    table = block_tables_ptr + tl.load(rows_ptr + chunk).to(tl.int64) * table_stride

    row = tl.arange(0, ROWS)
    dim = tl.arange(0, D)[None, :]
    key_token = tl.arange(0, TILE)
    token = first_token + row // GROUP
    head = kv_head * GROUP + row % GROUP
    is_row = (row < num_tokens * GROUP) & (token < query_len)
    # Rows without a token attend as the first one of the tile does: some key is visible to them, and no masks differ.
    position = length - query_len + tl.where(is_row, token, first_token)
    query_row = (query_start + token).to(tl.int64)
    query_ptrs = q_ptr + (query_row * q_stride + head * q_head_stride)[:, None] + dim
    query = tl.load(query_ptrs, mask=is_row[:, None], other=0.0)
    k_head = k_cache_ptr + kv_head.to(tl.int64) * head_stride + dim
    v_head = v_cache_ptr + kv_head.to(tl.int64) * head_stride + dim

    highest = tl.full([ROWS], float("-inf"), tl.float32)
    weights = tl.zeros([ROWS], tl.float32)
    total = tl.zeros([ROWS, D], tl.float32)
    seen_by_first = length - query_len + first_token + 1
    seen_by_last = tl.minimum(seen_by_first + num_tokens - 1, length)
    num_full = seen_by_first // TILE
    begin = 0
    end = tl.cdiv(seen_by_last, TILE)
    if IS_SPLIT:
        share = tl.maximum(tl.cdiv(end, tl.num_programs(2)), LEAST_SHARE)
        begin = tl.program_id(2) * share
        end = tl.minimum(begin + share, end)

    block = block_of(table, begin * TILE, key_token, seen_by_last, BLOCK_SIZE, TILE)
    for index in tl.range(begin, end, num_stages=STAGES):
        key_position = index * TILE + key_token
        # Past the end the last token is read again: an unused slot may hold a NaN, which no weight of 0 removes.
        offset = tl.minimum(key_position, seen_by_last - 1) % BLOCK_SIZE * D
        place = (block.to(tl.int64) * block_stride + offset)[:, None]
        k = tl.load(k_head + place)
        v = tl.load(v_head + place)
        block = block_of(table, (index + 1) * TILE, key_token, seen_by_last, BLOCK_SIZE, TILE)
        scores = tl.dot(query, k.T, input_precision=PRECISION)
        if index >= num_full:
            scores = tl.where(key_position[None, :] <= position[:, None], scores, float("-inf"))
        higher = tl.maximum(highest, tl.max(scores, 1) * scale_log2)
        base = higher
        if IS_SPLIT:  # a row may have seen no key of this part yet
            base = tl.where(higher == float("-inf"), 0.0, higher)
        shrink = tl.exp2(highest - base)
        weight = tl.exp2(scores * scale_log2 - base[:, None])
        weights = weights * shrink + tl.sum(weight, 1)
        total = tl.dot(weight.to(v.dtype), v, total * shrink[:, None], input_precision=PRECISION)
        highest = higher

    head_row = query_row * num_heads + head
    if IS_SPLIT:
        slot = tl.program_id(2).to(tl.int64) * all_tokens * num_heads + head_row
        tl.store(partial_highest_ptr + slot, highest, mask=is_row)
        tl.store(partial_weight_ptr + slot, weights, mask=is_row)
        tl.store(partial_total_ptr + slot[:, None] * D + dim, total, mask=is_row[:, None])
    else:
        total = total / weights[:, None]
        tl.store(out_ptr + head_row[:, None] * D + dim, total.to(out_ptr.dtype.element_ty), mask=is_row[:, None])


@triton.jit(do_not_specialize=["num_parts"])
def _join(
    out_ptr, partial_total_ptr, partial_highest_ptr, partial_weight_ptr, num_parts,
    D: tl.constexpr, SLOTS: tl.constexpr,
):  # fmt: skip
    """One program a head and query token."""
    row = tl.program_id(1).to(tl.int64) * tl.num_programs(0) + tl.program_id(0)
    step = tl.num_programs(1).to(tl.int64) * tl.num_programs(0)
    result = joined(
        partial_total_ptr, partial_highest_ptr, partial_weight_ptr, row, step, num_parts, 1.0,
        D, SLOTS,
    )  # fmt: skip
    tl.store(out_ptr + row * D + tl.arange(0, D), result.to(out_ptr.dtype.element_ty))
