"""KV of preempted sequences in the host's memory: copied out before a step's kernels, and back."""

from __future__ import annotations

import torch
from torch import Tensor

from .attention_inputs import KVStorage
from .mirror import Changes, Copy


class HostKV:
    """Copies by request. The core counts how many blocks there may be; pinned memory is reused by torch's allocator."""

    def __init__(self, kv: KVStorage) -> None:
        self._kv = kv
        self._is_pinned = kv.k[0].is_cuda
        self._held: dict[str, Tensor] = {}

    def copy_out(self, changes: Changes) -> None:
        """Keep what a plan preempts, before its blocks are given to others; let go of what has ended."""
        for sequence in changes.dropped:
            del self._held[sequence.id]
        for copy in changes.copies_out:
            self._held[copy.sequence.id] = self._out(copy)

    def copy_in(self, changes: Changes) -> None:
        """Bring back what a plan resumes, once its block tables are known."""
        for copy in changes.copies_in:
            self._in(copy, self._held.pop(copy.sequence.id))

    def _out(self, copy: Copy) -> Tensor:
        """[2 layers, num_blocks, KVH, block_size, D] in the host's memory; K and V of a layer stand side by side."""
        blocks = self._on_device(copy)
        first = self._kv.k[0]
        shape = (2 * len(self._kv.k), len(copy.blocks), *first.shape[1:])
        held = torch.empty(shape, dtype=first.dtype, pin_memory=self._is_pinned)
        for layer, cache in enumerate(_caches(self._kv)):
            held[layer].copy_(cache.index_select(0, blocks), non_blocking=True)
        return held

    def _in(self, copy: Copy, held: Tensor) -> None:
        count = len(copy.blocks)
        if not count:
            return
        blocks = self._on_device(copy)
        skipped = held.shape[1] - count
        for layer, cache in enumerate(_caches(self._kv)):
            cache.index_copy_(0, blocks, held[layer, skipped:].to(cache.device, non_blocking=True))

    def _on_device(self, copy: Copy) -> Tensor:
        """Its blocks; from memory that is not pinned the host would wait for all that the device has to do first."""
        blocks = torch.from_numpy(copy.blocks)
        pinned = blocks.pin_memory() if self._is_pinned else blocks
        return pinned.to(self._kv.k[0].device, non_blocking=True)


def _caches(kv: KVStorage) -> list[Tensor]:
    return [cache for pair in zip(kv.k, kv.v, strict=True) for cache in pair]
