"""Decode attention in Triton, against float64 beside the torch reference: odd shapes, shares, scattered blocks."""

from __future__ import annotations

import random

import pytest
import torch
from torch import Tensor

from llmsim.kernels.attention import reference
from llmsim.kernels.attention.decode import decode_attention
from llmsim.kernels.attention.decode_plan import DecodeWorkspace
from llmsim.kernels.attention.tuning import DecodeConfig
from llmsim.tests.support.kernel_checks import DEVICE, DTYPES, distance, fused_heads
from llmsim.tests.support.paged_attention import PagedSequences, assert_as_exact, exact_decode, paged_sequences

SCALE = 0.125
ODD_LENGTHS = [0, 1, 15, 0, 16, 17, 70]
SHAPES = [  # heads, KV heads, head dim, block size, tile: groups 1 to 8 and 12
    (2, 2, 64, 16, 16),
    (4, 2, 128, 1, 16),
    (9, 3, 64, 32, 32),
    (4, 1, 64, 256, 32),
    (5, 1, 128, 16, 32),
    (12, 2, 64, 4, 16),
    (7, 1, 64, 32, 16),
    (8, 1, 128, 16, 16),
    (12, 1, 64, 16, 64),
]


def workspace_for(q: Tensor, kv_heads: int, tile: int, num_programs: int, least_share: int = 1) -> DecodeWorkspace:
    """With so many programs a KV head and multiprocessor (the interpreter has one); two more sequences would fit."""
    config = DecodeConfig(tile, 4, 2, num_programs * kv_heads, least_share)
    return DecodeWorkspace.allocate(q.shape[0] + 2, q.shape[1], kv_heads, q.shape[2], q.dtype, DEVICE, config)


def arguments(q: Tensor, sequences: PagedSequences) -> tuple[Tensor, ...]:
    return q, sequences.k_cache, sequences.v_cache, sequences.block_tables, sequences.rows, sequences.context_lens


def check(
    lengths: list[int],
    shape: tuple[int, int, int, int, int],
    dtype: torch.dtype,
    num_programs: int,
    num_shared_blocks: int = 0,
    seed: int = 0,
) -> None:
    heads, kv_heads, dim, block_size, tile = shape
    sequences = paged_sequences(lengths, kv_heads, dim, block_size, dtype, num_shared_blocks, seed)
    _, q, _, _ = fused_heads(len(lengths), heads, kv_heads, dim, dtype)
    inputs = arguments(q, sequences)
    result = decode_attention(*inputs, SCALE, workspace_for(q, kv_heads, tile, num_programs))
    assert_as_exact(result, reference.decode_attention(*inputs, SCALE), exact_decode(q, sequences, SCALE))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_decode_is_as_exact_as_its_reference(dtype: torch.dtype, shape: tuple[int, int, int, int, int]) -> None:
    check(ODD_LENGTHS, shape, dtype, num_programs=4)


@pytest.mark.parametrize("num_programs", [1, 2, 5, 13, 60])
def test_shares_may_begin_and_end_anywhere(num_programs: int) -> None:
    check([130, 0, 5, 97, 16], (4, 2, 64, 16, 16), torch.float32, num_programs)


def test_more_parts_than_are_joined_at_once() -> None:
    check([40 * 16 + 3, 3], (1, 1, 64, 64, 16), torch.float32, num_programs=42)


def test_sequences_may_share_blocks() -> None:
    check([70, 33, 40, 64], (6, 2, 64, 16, 16), torch.float32, num_programs=3, num_shared_blocks=2)


def test_a_workspace_remembers_nothing_of_the_step_before() -> None:
    long, short = (paged_sequences(lengths, 1, 64, 16, torch.float32) for lengths in ([90, 61, 30], [0, 17]))
    _, q, _, _ = fused_heads(3, 2, 1, 64, torch.float32)
    workspace = workspace_for(q, 1, 16, 6)
    decode_attention(*arguments(q, long), SCALE, workspace)
    again = decode_attention(*arguments(q[:2], short), SCALE, workspace)
    assert distance(again, exact_decode(q[:2], short, SCALE)) <= 1e-6


def test_what_the_table_chooses_decodes() -> None:
    sequences = paged_sequences([100, 0, 65], 1, 128, 32, torch.bfloat16)
    _, q, _, _ = fused_heads(3, 4, 1, 128, torch.bfloat16)
    workspace = DecodeWorkspace.allocate(3, 4, 1, 128, torch.bfloat16, DEVICE)
    inputs = arguments(q, sequences)
    result = decode_attention(*inputs, SCALE, workspace)
    assert_as_exact(result, reference.decode_attention(*inputs, SCALE), exact_decode(q, sequences, SCALE))


def test_no_sequences_give_no_rows() -> None:
    sequences = paged_sequences([5], 1, 64, 16, torch.float32)
    _, q, _, _ = fused_heads(1, 2, 1, 64, torch.float32)
    inputs = [x[:0] if x is q or x.ndim == 1 else x for x in arguments(q, sequences)]
    assert decode_attention(*inputs, SCALE, workspace_for(q, 1, 16, 2)).shape == (0, 2, 64)


def test_a_batch_larger_than_the_workspace_is_refused() -> None:
    sequences = paged_sequences([5] * 4, 1, 64, 16, torch.float32)
    _, q, _, _ = fused_heads(4, 2, 1, 64, torch.float32)
    with pytest.raises(AssertionError, match="4 sequences, 3 fit"):
        decode_attention(*arguments(q, sequences), SCALE, workspace_for(q[:1], 1, 16, 2))


@pytest.mark.parametrize("least_share", [1, 3])
def test_tiles_are_shared_out_evenly_but_for_a_least_share(least_share: int) -> None:
    lengths = [0, 33, 0, 1, 64, 0]
    sequences = paged_sequences(lengths, 1, 64, 16, torch.float32)
    _, q, _, _ = fused_heads(len(lengths), 2, 1, 64, torch.float32)
    workspace = workspace_for(q, 1, 16, 5, least_share)
    result = decode_attention(*arguments(q, sequences), SCALE, workspace)
    assert workspace.share.item() == max(least_share, -(-8 // workspace.num_programs))
    assert workspace.tile_starts[: len(lengths) + 1].tolist() == [0, 0, 3, 3, 4, 8, 8]
    assert distance(result, exact_decode(q, sequences, SCALE)) <= 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_random_batches_are_as_exact_as_their_reference(dtype: torch.dtype) -> None:
    dice = random.Random(1)
    for seed in range(20):
        kv_heads, group = dice.choice([1, 2, 3]), dice.randrange(1, 9)
        block_size, tile = dice.choice([1, 2, 4, 8, 16, 32, 64, 128, 256]), dice.choice([16, 32, 64])
        shape = kv_heads * group, kv_heads, dice.choice([64, 128]), block_size, tile
        lengths = [dice.choice([0, 1, 15, 16, 17, dice.randrange(260)]) for _ in range(dice.randrange(1, 6))]
        check(lengths, shape, dtype, dice.randrange(1, 12), dice.randrange(3), seed)
