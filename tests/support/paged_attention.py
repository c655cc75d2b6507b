"""Paged caches for tests of attention, poisoned where no token is, and attention in float64 to hold results against."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .kernel_checks import DEVICE, distance, normal


@dataclass(frozen=True, slots=True)
class PagedSequences:
    """Sequences whose keys and values stand in scattered blocks; whatever is not a token's is NaN."""

    k_cache: Tensor
    v_cache: Tensor
    block_tables: Tensor
    rows: Tensor
    context_lens: Tensor
    keys: tuple[Tensor, ...]
    """Of each sequence [length, KVH, D], as they are in the cache."""
    values: tuple[Tensor, ...]


def paged_sequences(
    lengths: list[int],
    kv_heads: int,
    head_dim: int,
    block_size: int,
    dtype: torch.dtype,
    num_shared_blocks: int = 0,
    seed: int = 0,
) -> PagedSequences:
    """Sequences of these lengths; each shares its first full blocks, up to so many, with the longest one.

    Table rows stand in another order than sequences, and past a sequence's blocks they name block 0, as tables do.
    """
    generator = torch.Generator().manual_seed(seed)
    blocks = [-(-length // block_size) for length in lengths]
    free = (torch.randperm(sum(blocks), generator=generator) + 1).tolist()
    order = torch.randperm(len(lengths), generator=generator).tolist()
    longest = max(range(len(lengths)), key=lambda s: lengths[s])
    tables = torch.zeros(len(lengths), max(blocks) + 1, dtype=torch.int32)
    k_cache = torch.full((sum(blocks) + 1, kv_heads, block_size, head_dim), torch.nan).to(dtype)
    v_cache = k_cache.clone()
    contents: dict[int, tuple[Tensor, Tensor]] = {}
    for s in sorted(range(len(lengths)), key=lambda s: s != longest):
        keys, values = (
            normal(lengths[s], kv_heads, head_dim, dtype=dtype, seed=seed + 2 * s + i).cpu() for i in (1, 2)
        )
        shared = min(num_shared_blocks, lengths[s] // block_size) if s != longest else 0
        tables[order[s], :shared] = tables[order[longest], :shared]
        if shared:
            for own, first in zip((keys, values), contents[longest], strict=True):
                own[: shared * block_size] = first[: shared * block_size]
        for b in range(shared, blocks[s]):
            tables[order[s], b] = block = free.pop()
            here = slice(b * block_size, min((b + 1) * block_size, lengths[s]))
            for cache, tokens in ((k_cache, keys), (v_cache, values)):
                cache[block, :, : here.stop - here.start] = tokens[here].transpose(0, 1)
        contents[s] = keys, values
    return PagedSequences(
        k_cache.to(DEVICE),
        v_cache.to(DEVICE),
        tables.to(DEVICE),
        torch.tensor(order, dtype=torch.int32, device=DEVICE),
        torch.tensor(lengths, dtype=torch.int32, device=DEVICE),
        tuple(contents[s][0].to(DEVICE) for s in range(len(lengths))),
        tuple(contents[s][1].to(DEVICE) for s in range(len(lengths))),
    )


def exact_decode(q: Tensor, sequences: PagedSequences, scale: float) -> Tensor:
    """Decode attention of q [S, H, D] in float64; zeros without context."""
    return torch.stack(
        [exact_causal(q[s : s + 1], sequences.keys[s], sequences.values[s], scale)[0] for s in range(q.shape[0])]
    )


def exact_extend(q: Tensor, query_lens: list[int], sequences: PagedSequences, scale: float) -> Tensor:
    """Extend attention of chunks q [T, H, D] in float64."""
    chunks = zip(q.split(query_lens), sequences.keys, sequences.values, strict=True)
    return torch.cat([exact_causal(chunk, keys, values, scale) for chunk, keys, values in chunks])


def exact_causal(q: Tensor, keys: Tensor, values: Tensor, scale: float) -> Tensor:
    """Causal attention in float64 of q [n, H, D], the last n tokens of keys and values [length, KVH, D]."""
    if keys.shape[0] == 0:
        return torch.zeros(q.shape, dtype=torch.float64, device=q.device)
    group = q.shape[1] // keys.shape[1]
    wide_keys, wide_values = (tokens.double().repeat_interleave(group, dim=1) for tokens in (keys, values))
    scores = torch.einsum("qhd,khd->hqk", q.double(), wide_keys) * scale
    ahead = torch.ones(q.shape[0], keys.shape[0], dtype=torch.bool, device=q.device).triu(
        keys.shape[0] - q.shape[0] + 1
    )
    return torch.einsum("hqk,khd->qhd", scores.masked_fill(ahead, -torch.inf).softmax(-1), wide_values)


def assert_as_exact(actual: Tensor, reference: Tensor, exact: Tensor) -> None:
    """The error against float64 is at most twice that of the reference in the same dtype; a NaN is no number at all.

    That is the root mean square of it. The largest one, of few numbers, is a matter of luck, and may be four times that
    of the reference. Half a unit in the last place of the largest number is granted to both.
    """
    assert actual.dtype == reference.dtype
    assert actual.shape == reference.shape
    unit = torch.finfo(actual.dtype).eps * exact.abs().max().item() / 2
    for error, times in ((root_mean_square, 2), (distance, 4)):
        allowed = times * max(error(reference, exact), unit)
        assert error(actual, exact) <= allowed, f"{error(actual, exact):.3g} off; the reference {allowed / times:.3g}"


def root_mean_square(result: Tensor, exact: Tensor) -> float:
    """Of the errors; NaN, which is within no bound, where a result is NaN."""
    return (result.double() - exact).square().mean().sqrt().item()
