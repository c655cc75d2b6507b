"""New keys and values into the paged cache, in plain torch."""

from __future__ import annotations

from torch import Tensor


def write_kv(k: Tensor, v: Tensor, k_cache: Tensor, v_cache: Tensor, slots: Tensor) -> None:
    """Puts token t at its slot, block * block_size + offset; a slot of -1 writes nothing.

    k, v              [T, KVH, D], views allowed
    k_cache, v_cache  [num_blocks, KVH, block_size, D]
    slots             [T] int64
    """
    written = slots >= 0
    if not bool(written.all()):
        k, v, slots = k[written], v[written], slots[written]
    block_size = k_cache.shape[2]
    places = (slots // block_size, slots % block_size)
    k_cache.transpose(1, 2).index_put_(places, k)
    v_cache.transpose(1, 2).index_put_(places, v)
