"""Attention in plain torch, the backend of CPUs, against float64."""

from __future__ import annotations

import pytest
import torch

from llmsim.kernels.attention import reference
from llmsim.tests.support.kernel_checks import DEVICE, DTYPES, distance, fused_heads, normal
from llmsim.tests.support.paged_attention import exact_decode, exact_extend, paged_sequences

SCALE = 0.125
SEQUENCES = [  # lengths, heads, KV heads, head dim, block size
    ([0, 1, 15, 16, 17, 3000, 0], 6, 2, 64, 16),
    ([33, 2, 40, 31, 5000], 8, 1, 128, 1),
    ([257, 256, 0, 255], 3, 3, 64, 256),
]


def rounding(dtype: torch.dtype) -> float:
    """Half a unit in the last place of numbers up to 4, and what fp32 sums of thousands lose."""
    return 2 * torch.finfo(dtype).eps + 4e-6


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_decode_is_exact_but_for_its_last_rounding(dtype: torch.dtype) -> None:
    for lengths, heads, kv_heads, dim, block_size in SEQUENCES:
        sequences = paged_sequences(lengths, kv_heads, dim, block_size, dtype)
        _, q, _, _ = fused_heads(len(lengths), heads, kv_heads, dim, dtype)
        result = reference.decode_attention(
            q,
            sequences.k_cache,
            sequences.v_cache,
            sequences.block_tables,
            sequences.rows,
            sequences.context_lens,
            SCALE,
        )
        assert result.dtype == dtype
        assert distance(result, exact_decode(q, sequences, SCALE)) <= rounding(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_extend_is_exact_but_for_its_last_rounding(dtype: torch.dtype) -> None:
    for lengths, heads, kv_heads, dim, block_size in SEQUENCES:
        query_lens = [min(length, 1 + 600 * (c % 2)) for c, length in enumerate(lengths)]
        sequences = paged_sequences(lengths, kv_heads, dim, block_size, dtype)
        starts = torch.tensor([0, *query_lens], dtype=torch.int32, device=DEVICE).cumsum(0, dtype=torch.int32)
        _, q, _, _ = fused_heads(sum(query_lens), heads, kv_heads, dim, dtype)
        result = reference.extend_attention(
            q,
            sequences.k_cache,
            sequences.v_cache,
            sequences.block_tables,
            sequences.rows,
            starts,
            sequences.context_lens,
            max(query_lens),
            SCALE,
        )
        assert result.dtype == dtype
        assert distance(result, exact_extend(q, query_lens, sequences, SCALE)) <= rounding(dtype)


def test_company_in_a_batch_hardly_changes_a_sequence() -> None:
    sequences = paged_sequences([700, 20, 650], 2, 64, 16, torch.float32)
    q = normal(3, 4, 64, dtype=torch.float32)
    parts = sequences.k_cache, sequences.v_cache, sequences.block_tables
    together = reference.decode_attention(q, *parts, sequences.rows, sequences.context_lens, SCALE)
    for s in range(3):
        alone = reference.decode_attention(
            q[s : s + 1], *parts, sequences.rows[s : s + 1], sequences.context_lens[s : s + 1], SCALE
        )
        assert distance(alone[0], together[s].double()) <= 1e-6


def test_a_batch_without_any_context_gives_zeros() -> None:
    sequences = paged_sequences([0, 0], 2, 64, 16, torch.float32)
    q = normal(2, 4, 64, dtype=torch.float32)
    parts = sequences.k_cache, sequences.v_cache, sequences.block_tables
    assert not reference.decode_attention(q, *parts, sequences.rows, sequences.context_lens, SCALE).any()
