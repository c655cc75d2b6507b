"""Decode attention in Triton: one query token a sequence, over a paged cache, split evenly over the GPU.

    q             [S, H, D], rows may stand apart         k_cache, v_cache  [num_blocks, KVH, block_size, D]
    block_tables  [R, max_blocks] int32                   rows, context_lens  [S] int32; a context of 0 gives zeros
    out           [S, H, D]                               block_size: a power of two; D 64 or 128; any group H / KVH

Two launches, neither of which asks the host for anything: `_attend` works through each program's share of all keys (see
`decode_plan`), and `_reduce` joins the parts of sequences that several programs worked on. The query heads of a KV head
are the rows of one tensor-core tile (padded to 16), so each key and value is read once. Softmax is base 2.

What bounds it is bytes in flight: an H200 needs 4.8 TB/s x 600 ns = 2.9 MB of loads under way, 22 KB on each of its 132
multiprocessors. The numbers of a block of keys are read one tile ahead, so that copies of K and V into shared memory
never wait for them: with `num_stages` 3 two tiles of K and V, 64 KB, are under way when a program waits for the first
of them and 32 KB while it computes. 71 KB of shared memory and 128 registers a thread let three programs of four warps
live on a multiprocessor: 96 KB under way at the least. A tile costs a warp some 430 instructions for 32 KB, that is 76
bytes a cycle with four schedulers, where memory delivers 21 (compiled for sm_90, bf16, D 128).
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from .blocks import block_of
from .decode_plan import DecodeWorkspace, share_of
from .joining import joined


def decode_attention(
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    block_tables: Tensor,
    rows: Tensor,
    context_lens: Tensor,
    scale: float,
    workspace: DecodeWorkspace,
) -> Tensor:
    """What `Kernels.decode_attention` asks for; `scale` is positive."""
    num_sequences, num_heads, head_dim = q.shape
    num_kv_heads, block_size = k_cache.shape[1], k_cache.shape[2]
    group = num_heads // num_kv_heads
    config = workspace.config
    assert num_sequences <= workspace.max_num_sequences, f"{num_sequences} sequences, {workspace.max_num_sequences} fit"
    out = torch.empty(num_sequences, num_heads, head_dim, dtype=q.dtype, device=q.device)
    if num_sequences == 0:
        return out
    scale_log2 = scale * math.log2(math.e)
    _attend[(num_kv_heads, workspace.num_programs)](
        q, k_cache, v_cache, block_tables, rows, context_lens, out,
        workspace.partial_total, workspace.partial_highest, workspace.partial_weight,
        workspace.tile_starts, workspace.share,
        num_sequences, q.stride(0), q.stride(1), k_cache.stride(0), k_cache.stride(1), block_tables.stride(0),
        scale_log2, GROUP=group, ROWS=max(16, triton.next_power_of_2(group)), D=head_dim, BLOCK_SIZE=block_size,
        SEQUENCES=triton.next_power_of_2(workspace.max_num_sequences), LEAST_SHARE=config.least_share,
        TILE=config.tile, STAGES=config.num_stages, PRECISION=config.fp32_precision, num_warps=config.num_warps,
    )  # fmt: skip
    _reduce[(num_heads, num_sequences)](
        out, workspace.partial_total, workspace.partial_highest, workspace.partial_weight,
        workspace.tile_starts, workspace.share, scale_log2,
        D=head_dim, SLOTS=32, num_warps=4,
    )  # fmt: skip
    return out


@triton.jit(do_not_specialize=["num_sequences"])
def _attend(
    q_ptr, k_cache_ptr, v_cache_ptr, block_tables_ptr, rows_ptr, context_lens_ptr, out_ptr,
    partial_total_ptr, partial_highest_ptr, partial_weight_ptr, tile_starts_ptr, share_ptr,
    num_sequences, q_stride, q_head_stride, block_stride, head_stride, table_stride, scale_log2,
    GROUP: tl.constexpr, ROWS: tl.constexpr, D: tl.constexpr, BLOCK_SIZE: tl.constexpr,
    SEQUENCES: tl.constexpr, LEAST_SHARE: tl.constexpr,
    TILE: tl.constexpr, STAGES: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One program a KV head and share of tiles; see `decode_plan`."""
    kv_head = tl.program_id(0)
    num_heads = tl.num_programs(0) * GROUP
    program = tl.program_id(1)
    share, tile, stop, sequence, begin, ends = share_of(
        context_lens_ptr, num_sequences, program, tl.num_programs(1), TILE, LEAST_SHARE, SEQUENCES
    )
    if (kv_head == 0) & (program == 0):
        place = tl.arange(0, SEQUENCES)
        tl.store(share_ptr, share)
        tl.store(tile_starts_ptr, 0)
        tl.store(tile_starts_ptr + 1 + place, ends, mask=place < num_sequences)
    if tile >= stop:
        return
    row = tl.arange(0, ROWS)
    dim = tl.arange(0, D)[None, :]
    token = tl.arange(0, TILE)
    is_head = row < GROUP
    head = kv_head * GROUP + row
    k_head = k_cache_ptr + kv_head.to(tl.int64) * head_stride + dim
    v_head = v_cache_ptr + kv_head.to(tl.int64) * head_stride + dim

    while tile < stop:
        length = tl.load(context_lens_ptr + sequence)
        after = begin + tl.cdiv(length, TILE)
        until = tl.minimum(after, stop)
        table = block_tables_ptr + tl.load(rows_ptr + sequence).to(tl.int64) * table_stride
        query_ptrs = q_ptr + sequence.to(tl.int64) * q_stride + head[:, None] * q_head_stride + dim
        query = tl.load(query_ptrs, mask=is_head[:, None], other=0.0)

        highest = tl.full([ROWS], float("-inf"), tl.float32)
        # Summed over a row at the end only: a sum across warps in each tile would cost three barriers.
        weights = tl.zeros([ROWS, TILE], tl.float32)
        total = tl.zeros([ROWS, D], tl.float32)
        block = block_of(table, (tile - begin) * TILE, token, length, BLOCK_SIZE, TILE)
        for index in tl.range(tile - begin, until - begin, num_stages=STAGES):
            position = index * TILE + token
            # Past the end the last token is read again: an unused slot may hold a NaN, which no weight of 0 removes.
            offset = tl.minimum(position, length - 1) % BLOCK_SIZE * D
            place = (block.to(tl.int64) * block_stride + offset)[:, None]
            k = tl.load(k_head + place)
            v = tl.load(v_head + place)
            block = block_of(table, (index + 1) * TILE, token, length, BLOCK_SIZE, TILE)
            scores = tl.dot(query, k.T, input_precision=PRECISION)
            scores = tl.where((position < length)[None, :], scores, float("-inf"))
            higher = tl.maximum(highest, tl.max(scores, 1))
            # Differences first: what rounds a score that weighs much is then small.
            shrink = tl.exp2((highest - higher) * scale_log2)
            weight = tl.exp2((scores - higher[:, None]) * scale_log2)
            weights = weights * shrink[:, None] + weight
            total = tl.dot(weight.to(v.dtype), v, total * shrink[:, None], input_precision=PRECISION)
            highest = higher

        weight_sum = tl.sum(weights, 1)
        if (tile == begin) & (until == after):
            out_ptrs = out_ptr + (sequence.to(tl.int64) * num_heads + head)[:, None] * D + dim
            tl.store(out_ptrs, (total / weight_sum[:, None]).to(out_ptr.dtype.element_ty), mask=is_head[:, None])
        else:
            slot = (program + sequence).to(tl.int64) * num_heads + head
            tl.store(partial_total_ptr + slot[:, None] * D + dim, total, mask=is_head[:, None])
            tl.store(partial_highest_ptr + slot, highest, mask=is_head)
            tl.store(partial_weight_ptr + slot, weight_sum, mask=is_head)
        tile = until
        begin = after
        sequence += 1
        if tile < stop:
            while tl.load(context_lens_ptr + sequence) == 0:
                sequence += 1


@triton.jit
def _reduce(
    out_ptr, partial_total_ptr, partial_highest_ptr, partial_weight_ptr, tile_starts_ptr, share_ptr,
    scale_log2, D: tl.constexpr, SLOTS: tl.constexpr,
):  # fmt: skip
    """One program a head and sequence; what a single program worked on is there already."""
    head = tl.program_id(0)
    num_heads = tl.num_programs(0)
    sequence = tl.program_id(1)
    begin = tl.load(tile_starts_ptr + sequence)
    after = tl.load(tile_starts_ptr + sequence + 1)
    share = tl.load(share_ptr)
    first = begin // share
    last = (after - 1) // share
    out_ptrs = out_ptr + (sequence.to(tl.int64) * num_heads + head) * D + tl.arange(0, D)
    if after == begin:
        tl.store(out_ptrs, tl.zeros([D], out_ptr.dtype.element_ty))
    elif last > first:
        slot = (first + sequence).to(tl.int64) * num_heads + head
        result = joined(
            partial_total_ptr, partial_highest_ptr, partial_weight_ptr, slot, num_heads, last - first + 1, scale_log2,
            D, SLOTS,
        )  # fmt: skip
        tl.store(out_ptrs, result.to(out_ptr.dtype.element_ty))
