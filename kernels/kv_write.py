"""New keys and values into the paged cache, as a Triton kernel over slots.

    k, v [T, KVH, D]                                  views of a fused row allowed
    k_cache, v_cache [num_blocks, KVH, block_size, D]  one dtype with k and v: bits are moved, not numbers
    slots [T] int64                                   block * block_size + offset; -1 writes nothing

A program moves `ROWS` heads, counted through all tokens, so no number of heads needs padding.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

ROWS = 32


@triton.jit
def _write_kv(
    k_ptr, v_ptr, k_cache_ptr, v_cache_ptr, slots_ptr, k_stride, v_stride, num_rows,
    KVH: tl.constexpr, D: tl.constexpr, BLOCK_SIZE: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    tokens, heads = rows // KVH, rows % KVH
    slots = tl.load(slots_ptr + tokens, mask=rows < num_rows, other=-1)
    written = (slots >= 0)[:, None]
    columns = tl.arange(0, D)[None, :]
    places = ((slots // BLOCK_SIZE * KVH + heads) * BLOCK_SIZE + slots % BLOCK_SIZE) * D
    places = places[:, None] + columns
    k = tl.load(k_ptr + (tokens * k_stride + heads * D)[:, None] + columns, mask=written)
    v = tl.load(v_ptr + (tokens * v_stride + heads * D)[:, None] + columns, mask=written)
    tl.store(k_cache_ptr + places, k, mask=written)
    tl.store(v_cache_ptr + places, v, mask=written)


def write_kv(k: Tensor, v: Tensor, k_cache: Tensor, v_cache: Tensor, slots: Tensor) -> None:
    """Puts k and v [T, KVH, D] at their slots of the cache, which is contiguous."""
    num_tokens, num_kv_heads, head_dim = k.shape
    if num_tokens == 0:
        return
    num_rows = num_tokens * num_kv_heads
    _write_kv[(triton.cdiv(num_rows, ROWS),)](
        k, v, k_cache, v_cache, slots, k.stride(0), v.stride(0), num_rows,
        KVH=num_kv_heads, D=head_dim, BLOCK_SIZE=k_cache.shape[2], ROWS=ROWS, num_warps=4,
    )  # fmt: skip
