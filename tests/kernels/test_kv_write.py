"""Keys and values go to their slots, and nothing else of the cache changes."""

from __future__ import annotations

from types import ModuleType

import pytest
import torch
from torch import Tensor

from llmsim.kernels import kv_write
from llmsim.kernels.reference import kv_write as reference
from llmsim.tests.support.kernel_checks import DEVICE, DTYPES, TOKEN_COUNTS, fused_heads, normal

SHAPES = [*((tokens, 2, 16, 64) for tokens in TOKEN_COUNTS), (7, 1, 32, 128), (20, 3, 16, 64), (9, 8, 256, 64)]


def scattered_slots(num_tokens: int, num_slots: int) -> Tensor:
    """Different slots in no order, none of block 0's first; every fifth token is written nowhere."""
    slots = torch.randperm(num_slots - 1, generator=torch.Generator().manual_seed(3))[:num_tokens] + 1
    slots[4::5] = -1
    return slots.to(DEVICE)


@pytest.mark.parametrize("module", [kv_write, reference], ids=["triton", "torch"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_each_token_is_found_at_its_slot_and_all_else_is_as_before(module: ModuleType, dtype: torch.dtype) -> None:
    for num_tokens, kv_heads, block_size, dim in SHAPES:
        _, _, k, v = fused_heads(num_tokens, 4, kv_heads, dim, dtype)
        caches = [normal(4, kv_heads, block_size, dim, dtype=dtype, seed=seed) for seed in (1, 2)]
        slots = scattered_slots(num_tokens, 4 * block_size)
        expected = [cache.clone() for cache in caches]
        for token, slot in enumerate(slots.tolist()):
            if slot >= 0:
                expected[0][slot // block_size, :, slot % block_size] = k[token]
                expected[1][slot // block_size, :, slot % block_size] = v[token]
        module.write_kv(k, v, *caches, slots)
        assert torch.equal(caches[0], expected[0])
        assert torch.equal(caches[1], expected[1])


@pytest.mark.parametrize("module", [kv_write, reference], ids=["triton", "torch"])
def test_nan_is_carried_bit_by_bit(module: ModuleType) -> None:
    k = torch.full((1, 2, 64), float("nan"), device=DEVICE, dtype=torch.bfloat16)
    caches = [torch.zeros(2, 2, 16, 64, device=DEVICE, dtype=torch.bfloat16) for _ in range(2)]
    module.write_kv(k, k, *caches, torch.tensor([17], device=DEVICE))
    assert bool(caches[0][1, :, 1].isnan().all())
    assert caches[0].isnan().sum() == 2 * 64
