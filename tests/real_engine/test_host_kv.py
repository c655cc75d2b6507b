"""KV of preempted sequences on the host: what comes back is what went, and nothing on its way makes the host wait."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from llmsim.policies.core.sequence import Sequence
from llmsim.real_engine.attention_inputs import KVStorage
from llmsim.real_engine.host_kv import HostKV
from llmsim.real_engine.mirror import Changes, Copy
from llmsim.tests.support.driven_core import core_of, request_of


@pytest.fixture
def sequence() -> Sequence:
    core = core_of(num_blocks=10)
    core.add_request(request_of("a", 5, 3), 0)
    return core.sequences["a"]


def kv_storage() -> KVStorage:
    """Two layers of eight blocks, no two numbers alike."""
    caches = [torch.arange(96.0).reshape(8, 1, 3, 4) + 100 * part for part in range(4)]
    return KVStorage(tuple(caches[:2]), tuple(caches[2:]))


def copied(sequence: Sequence, blocks: list[int]) -> Copy:
    return Copy(sequence, np.array(blocks, np.int64))


def test_the_last_blocks_come_back_to_other_places(sequence: Sequence) -> None:
    kv = kv_storage()
    before = [cache.clone() for cache in (*kv.k, *kv.v)]
    host = HostKV(kv)
    host.copy_out(Changes(copies_out=[copied(sequence, [5, 2, 7])]))
    for cache in (*kv.k, *kv.v):
        cache.fill_(-1)
    host.copy_in(Changes(copies_in=[copied(sequence, [1, 6])]))
    for cache, was in zip((*kv.k, *kv.v), before, strict=True):
        assert torch.equal(cache[[1, 6]], was[[2, 7]])
        assert bool((cache[[0, 2, 3, 4, 5, 7]] == -1).all())


def test_on_a_gpu_all_that_is_copied_lies_in_pinned_memory(sequence: Sequence, monkeypatch: pytest.MonkeyPatch) -> None:
    pinned: list[int] = []
    empty = torch.empty

    def pin(tensor: Tensor) -> Tensor:
        pinned.append(tensor.numel())
        return tensor

    def pinned_empty(shape: tuple[int, ...], *, dtype: torch.dtype, pin_memory: bool) -> Tensor:
        assert pin_memory
        return pin(empty(shape, dtype=dtype))

    monkeypatch.setattr(Tensor, "pin_memory", pin)
    monkeypatch.setattr(torch, "empty", pinned_empty)
    host = HostKV(kv_storage())
    host._is_pinned = True
    host.copy_out(Changes(copies_out=[copied(sequence, [5, 2, 7])]))
    host.copy_in(Changes(copies_in=[copied(sequence, [1, 6])]))
    assert pinned == [3, 4 * 3 * 12, 2]
