"""A drawn token for each row as Triton kernels: thresholds by bisection, then a place on the row of kept weights.

    logits [S, vocab] fp32, bf16, fp16             seeds, positions [S] int64
    temperatures, top_ps [S] fp32, top_ks [S] int32 -> tokens [S] int64

What is kept is a threshold on logits. The bisection goes over fp32 bits in the order of their numbers and ends at a
logit that occurs, so it is the one that sorting would find (`reference.sampling`), equals included. All else is
integers (`numbers`), so the token is the same as there. Most rows are decided among their few thousand likeliest tokens
(`candidates`), in one program's registers; a row so flat that these do not suffice is searched whole (`whole_row`).

Any mixture of parameters is one sequence of launches, which depends on shapes alone.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from .candidates import ROOM, candidates_of, is_cut
from .device_numbers import LARGEST_KEY, LOG2_E, dice_of, key_of, place_of, share_of, weights_of
from .greedy import chunk_maxima, chunk_of, largest_chunk, loaded_logits
from .whole_row import drawn_from_whole_row


@triton.jit
def _threshold(keys, measure, high, needed):
    """The largest key that counts (or weighs), with all larger ones, at least `needed`, which all together do."""
    low = tl.min(tl.where(measure > 0, keys, LARGEST_KEY), axis=0)
    while low < high:
        middle = low + ((high.to(tl.int64) - low + 1) // 2).to(tl.int32)
        above = keys >= middle
        enough = tl.sum(tl.where(above, measure, 0), axis=0) >= needed
        next_above = tl.min(tl.where(above, keys, high), axis=0)
        next_below = tl.max(tl.where(above, low, tl.maximum(keys, low)), axis=0)
        low = tl.where(enough, next_above, low)
        high = tl.where(enough, high, next_below)
    return low


@triton.jit
def _index_at(place, weights):
    """Which of weights laid end to end lies at a place."""
    return tl.sum((tl.cumsum(weights, axis=0) <= place).to(tl.int32), axis=0)


@triton.jit
def _drawn_from_all(
    row_ptr, totals_ptr, largest, slope, dice,
    vocab: tl.constexpr, CHUNK: tl.constexpr, chunks: tl.constexpr, CHUNKS: tl.constexpr,
):  # fmt: skip
    """A token where nothing is left out: the chunk by the totals, then the token in it."""
    number = tl.arange(0, CHUNKS)
    totals = tl.load(totals_ptr + number, mask=number < chunks, other=0)
    place = place_of(tl.sum(totals, axis=0), dice)
    chunk = _index_at(place, totals)
    place -= tl.sum(tl.where(number < chunk, totals, 0), axis=0)
    tokens = chunk * CHUNK + tl.arange(0, CHUNK)
    weights = weights_of(loaded_logits(row_ptr, tokens, vocab), largest, slope)
    return chunk * CHUNK + _index_at(place, tl.where(tokens < vocab, weights, 0))


@triton.jit
def _drawn_from_candidates(tokens_ptr, logits_ptr, found, total, largest, slope, top_k, top_p, dice):
    """A token of the candidates, or -1 where they do not hold all that is kept; a top_k of 0 is none."""
    index = tl.arange(0, ROOM)
    logits = tl.load(logits_ptr + index, mask=index < found, other=float("-inf"))
    weights = tl.where(index < found, weights_of(logits, largest, slope), 0)
    keys = key_of(logits)
    token = tl.full((), -1, tl.int32)
    if top_k <= found:
        if top_k > 0:
            kept = keys >= _threshold(keys, (index < found).to(tl.int32), key_of(largest), top_k)
            weights = tl.where(kept, weights, 0)
            total = tl.sum(weights, axis=0)
        needed = tl.where(top_p < 1.0, share_of(total, top_p), total)
        if tl.sum(weights, axis=0) >= needed:
            if top_p < 1.0:
                weights = tl.where(keys >= _threshold(keys, weights, key_of(largest), needed), weights, 0)
            chosen = _index_at(place_of(tl.sum(weights, axis=0), dice), weights)
            token = tl.load(tokens_ptr + chosen)
    return token


@triton.jit
def _sample(
    logits_ptr, maxima_ptr, places_ptr, totals_ptr, found_ptr, candidates_ptr, candidate_logits_ptr,
    temperatures_ptr, top_ks_ptr, top_ps_ptr, seeds_ptr, positions_ptr, tokens_ptr, row_stride,
    vocab: tl.constexpr, CHUNK: tl.constexpr, chunks: tl.constexpr, CHUNKS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    maxima_ptr += row * chunks
    totals_ptr += row * chunks
    logits_ptr += row * row_stride
    best = largest_chunk(maxima_ptr, chunks, CHUNKS)
    token = tl.load(places_ptr + row * chunks + best)
    temperature = tl.load(temperatures_ptr + row)
    if temperature > 0.0:
        largest = tl.load(maxima_ptr + best)
        slope = tl.div_rn(LOG2_E, temperature)
        top_k, top_p = tl.load(top_ks_ptr + row), tl.load(top_ps_ptr + row)
        top_k = tl.where(top_k < vocab, top_k, 0)
        dice = dice_of(tl.load(seeds_ptr + row), tl.load(positions_ptr + row))
        if is_cut(top_k, top_p, vocab):
            number = tl.arange(0, CHUNKS)
            total = tl.sum(tl.load(totals_ptr + number, mask=number < chunks, other=0), axis=0)
            token = _drawn_from_candidates(
                candidates_ptr + row * ROOM, candidate_logits_ptr + row * ROOM, tl.load(found_ptr + row), total,
                largest, slope, top_k, top_p, dice,
            )  # fmt: skip
            if token < 0:
                token = drawn_from_whole_row(logits_ptr, maxima_ptr, largest, slope, top_k, top_p, dice, vocab, CHUNK)
        else:
            token = _drawn_from_all(logits_ptr, totals_ptr, largest, slope, dice, vocab, CHUNK, chunks, CHUNKS)
    tl.store(tokens_ptr + row, token.to(tl.int64))


def sample(
    logits: Tensor, temperatures: Tensor, top_ks: Tensor, top_ps: Tensor, seeds: Tensor, positions: Tensor
) -> Tensor:
    """A token for each row of logits [S, vocab]; rows may stand apart, the other arguments are contiguous [S]."""
    num_rows, vocab = logits.shape
    tokens = torch.empty(num_rows, dtype=torch.int64, device=logits.device)
    if num_rows == 0:
        return tokens
    maxima, places = chunk_maxima(logits)
    candidates = candidates_of(logits, maxima, temperatures, top_ks, top_ps)
    chunks = maxima.shape[1]
    _sample[(num_rows,)](
        logits, maxima, places, candidates.totals, candidates.found, candidates.tokens, candidates.logits,
        temperatures, top_ks, top_ps, seeds, positions, tokens, logits.stride(0),
        vocab=vocab, CHUNK=chunk_of(vocab), chunks=chunks, CHUNKS=triton.next_power_of_2(chunks), num_warps=8,
    )  # fmt: skip
    return tokens
