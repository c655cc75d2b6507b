"""Extend attention in Triton, against float64 beside the torch reference: odd chunks, prefixes, scattered blocks."""

from __future__ import annotations

import random

import pytest
import torch
from torch import Tensor

from llmsim.kernels.attention import reference
from llmsim.kernels.attention.decode import decode_attention
from llmsim.kernels.attention.decode_plan import DecodeWorkspace
from llmsim.kernels.attention.extend import extend_attention
from llmsim.kernels.attention.tuning import ExtendConfig
from llmsim.tests.support.kernel_checks import DEVICE, DTYPES, distance, fused_heads
from llmsim.tests.support.paged_attention import PagedSequences, assert_as_exact, exact_extend, paged_sequences

SCALE = 0.125
CHUNKS = [(1, 1), (15, 15), (40, 0), (16, 3), (17, 17), (70, 33)]  # tokens, the last so many of them queries
SHAPES = [  # heads, KV heads, head dim, block size, rows, tile: groups 1 to 8 and 12
    (2, 2, 64, 16, 16, 16),
    (4, 2, 128, 1, 16, 32),
    (9, 3, 64, 32, 32, 32),
    (4, 1, 64, 256, 64, 16),
    (5, 1, 128, 16, 32, 32),
    (12, 2, 64, 4, 32, 16),
    (7, 1, 64, 32, 16, 64),
    (8, 1, 128, 16, 16, 16),
    (12, 1, 64, 16, 64, 64),
]


def extended(
    q: Tensor, query_lens: list[int], sequences: PagedSequences, config: ExtendConfig | None
) -> tuple[Tensor, Tensor]:
    """What the kernel gives, and the reference."""
    starts = torch.tensor([0, *query_lens], device=DEVICE).cumsum(0, dtype=torch.int32)
    cached = sequences.k_cache, sequences.v_cache, sequences.block_tables, sequences.rows
    rest = starts, sequences.context_lens, max(query_lens), SCALE
    return extend_attention(q, *cached, *rest, config), reference.extend_attention(q, *cached, *rest)


def check(
    chunks: list[tuple[int, int]],
    shape: tuple[int, int, int, int, int, int],
    dtype: torch.dtype,
    num_shared_blocks: int = 0,
    seed: int = 0,
    num_splits: int = 1,
) -> None:
    heads, kv_heads, dim, block_size, rows, tile = shape
    lengths, query_lens = (list(of_chunks) for of_chunks in zip(*chunks, strict=True))
    sequences = paged_sequences(lengths, kv_heads, dim, block_size, dtype, num_shared_blocks, seed)
    _, q, _, _ = fused_heads(sum(query_lens), heads, kv_heads, dim, dtype)
    config = ExtendConfig(rows, tile, num_warps=4, num_stages=2, num_splits=num_splits, least_share=1)
    result, plain = extended(q, query_lens, sequences, config)
    assert_as_exact(result, plain, exact_extend(q, query_lens, sequences, SCALE))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_extend_is_as_exact_as_its_reference(dtype: torch.dtype, shape: tuple[int, int, int, int, int, int]) -> None:
    check(CHUNKS, shape, dtype)


@pytest.mark.parametrize("prefix", [0, 1, 15, 16, 17, 31, 32, 33, 100])
def test_a_prefix_may_end_anywhere_in_a_tile(prefix: int) -> None:
    check([(prefix + 9, 9)], (2, 1, 64, 16, 16, 32), torch.float32)


@pytest.mark.parametrize(
    ("num_splits", "dtype"), [(2, torch.float32), (3, torch.bfloat16), (20, torch.float16)], ids=str
)
def test_keys_may_be_split_among_programs(num_splits: int, dtype: torch.dtype) -> None:
    check([(150, 5), (3, 3), (40, 0), (33, 20)], (4, 2, 64, 16, 32, 16), dtype, num_splits=num_splits)


def test_chunks_may_share_a_cached_prefix() -> None:
    check([(70, 5), (50, 18), (35, 2)], (6, 2, 64, 16, 32, 32), torch.float32, num_shared_blocks=2)


def test_many_chunks_each_find_their_tiles() -> None:
    chunks = [(c % 5 + c % 3, c % 5) for c in range(21)]
    check(chunks, (3, 1, 64, 16, 16, 16), torch.float32)


def test_draft_tokens_of_several_sequences_are_verified_in_one_launch() -> None:
    check([(50, 4), (33, 4), (4, 4), (17, 4)], (4, 1, 64, 16, 16, 32), torch.bfloat16)


def test_a_chunk_of_one_token_is_a_decode() -> None:
    sequences = paged_sequences([33, 5, 64], 2, 64, 16, torch.float32)
    _, q, _, _ = fused_heads(3, 4, 2, 64, torch.float32)
    result, _ = extended(q, [1, 1, 1], sequences, None)
    workspace = DecodeWorkspace.allocate(3, 4, 2, 64, torch.float32, DEVICE)
    inputs = q, sequences.k_cache, sequences.v_cache, sequences.block_tables, sequences.rows, sequences.context_lens
    decoded = decode_attention(*inputs, SCALE, workspace)
    assert distance(result, decoded.double()) <= 1e-6


def test_chunks_give_what_the_whole_prompt_gives() -> None:
    sequences = paged_sequences([75], 1, 64, 16, torch.float32)
    _, q, _, _ = fused_heads(75, 3, 1, 64, torch.float32)
    whole, _ = extended(q, [75], sequences, None)
    for start, end in ((0, 31), (31, 32), (32, 75)):
        until = torch.tensor([end], dtype=torch.int32, device=DEVICE)
        starts = torch.tensor([0, end - start], dtype=torch.int32, device=DEVICE)
        parts = sequences.k_cache, sequences.v_cache, sequences.block_tables, sequences.rows
        chunk = extend_attention(q[start:end], *parts, starts, until, end - start, SCALE)
        assert distance(chunk, whole[start:end].double()) <= 1e-6


def test_no_tokens_give_no_rows() -> None:
    sequences = paged_sequences([5], 1, 64, 16, torch.float32)
    _, q, _, _ = fused_heads(1, 2, 1, 64, torch.float32)
    result, _ = extended(q[:0], [0], sequences, None)
    assert result.shape == (0, 2, 64)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_random_chunks_are_as_exact_as_their_reference(dtype: torch.dtype) -> None:
    dice = random.Random(1)
    for seed in range(20):
        kv_heads, group = dice.choice([1, 2, 3]), dice.randrange(1, 9)
        block_size = dice.choice([1, 2, 4, 8, 16, 32, 64, 128, 256])
        rows, tile = dice.choice([16, 32, 64, 128]), dice.choice([16, 32, 64])
        shape = kv_heads * group, kv_heads, dice.choice([64, 128]), block_size, rows, tile
        queries = [dice.choice([1, 2, dice.randrange(1, 50)]) for _ in range(dice.randrange(1, 5))]
        chunks = [(n + dice.choice([0, 1, 15, 16, dice.randrange(150)]), n) for n in queries]
        check(chunks, shape, dtype, dice.randrange(3), seed, dice.choice([1, 1, 4]))
