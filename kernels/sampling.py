"""A drawn token for each row as a Triton kernel: thresholds by bisection, then a place on the row of kept weights.

    logits [S, vocab] fp32, bf16, fp16          seeds, positions [S] int64
    temperatures, top_ps [S] fp32, top_ks [S] int32 -> tokens [S] int64

One program a row, whatever its parameters, so any mixture stands in one launch and one CUDA graph. What is kept is a
threshold on logits: the bisection goes over fp32 bits in the order of their numbers and ends at a logit that occurs, so
it is the one that sorting would find (`reference.sampling`), equals included. All else are integers
(`integer_sampling`), so the token is the same as there. A chunk without a logit above the threshold's lower bound is
passed over unread.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from . import integer_sampling as numbers
from .greedy import chunk_maxima, chunk_of, largest_chunk, loaded_logits

FRACTION_BITS = tl.constexpr(numbers.FRACTION_BITS)
FRACTION_ONE = tl.constexpr(1 << numbers.FRACTION_BITS)
FRACTION_MASK = tl.constexpr((1 << numbers.FRACTION_BITS) - 1)
FRACTION_SHIFT = tl.constexpr(32 - numbers.FRACTION_BITS)
LOWEST_EXPONENT = tl.constexpr(numbers.LOWEST_EXPONENT)
LOG2_E = tl.constexpr(numbers.LOG2_E)
POWER_0 = tl.constexpr(numbers.POWER_0)
POWER_1 = tl.constexpr(numbers.POWER_1)
POWER_2 = tl.constexpr(numbers.POWER_2)
POWER_3 = tl.constexpr(numbers.POWER_3)
POWER_4 = tl.constexpr(numbers.POWER_4)
POWER_5 = tl.constexpr(numbers.POWER_5)
POWER_6 = tl.constexpr(numbers.POWER_6)
RAISED_BITS = tl.constexpr(numbers.WEIGHT_BITS - numbers.POWER_BITS)
GOLDEN_GAMMA = tl.constexpr(numbers.GOLDEN_GAMMA)
MIX_1 = tl.constexpr(numbers.MIX_1)
MIX_2 = tl.constexpr(numbers.MIX_2)
SHARE_BITS = tl.constexpr(numbers.SHARE_BITS)
SHARE_ONE = tl.constexpr(1 << numbers.SHARE_BITS)
SHARE_SHIFT = tl.constexpr(numbers.SPLIT_BITS - numbers.SHARE_BITS)
SPLIT_BITS = tl.constexpr(numbers.SPLIT_BITS)
SPLIT_MASK = tl.constexpr((1 << numbers.SPLIT_BITS) - 1)
PLACE_SHIFT = tl.constexpr(32 - numbers.SPLIT_BITS)
LARGEST_KEY = tl.constexpr(2**31 - 1)


@triton.jit
def _key(logits):
    """Integers in the order of fp32 numbers (none of which is -0 or NaN)."""
    bits = logits.to(tl.int32, bitcast=True)
    return bits ^ ((bits >> 31) & LARGEST_KEY)


@triton.jit
def _weights(logits, largest, slope):
    exponent = tl.where(logits == largest, 0.0, (logits - largest) * slope)
    fixed = (tl.maximum(exponent, LOWEST_EXPONENT) * FRACTION_ONE).to(tl.int32)
    fraction = ((fixed & FRACTION_MASK) << FRACTION_SHIFT).to(tl.uint32, bitcast=True)
    power = tl.full(fraction.shape, POWER_6, tl.uint32)
    power = tl.umulhi(power, fraction) + POWER_5
    power = tl.umulhi(power, fraction) + POWER_4
    power = tl.umulhi(power, fraction) + POWER_3
    power = tl.umulhi(power, fraction) + POWER_2
    power = tl.umulhi(power, fraction) + POWER_1
    power = tl.umulhi(power, fraction) + POWER_0
    halvings = tl.minimum(-(fixed >> FRACTION_BITS), 63)
    return (power.to(tl.int64) << RAISED_BITS) >> halvings.to(tl.int64)


@triton.jit
def _mixed(state):
    state = (state ^ (state >> 30)) * MIX_1
    state = (state ^ (state >> 27)) * MIX_2
    return state ^ (state >> 31)


@triton.jit
def _dice(seed, position):
    state = _mixed(seed.to(tl.uint64) + GOLDEN_GAMMA)
    return (_mixed(state + GOLDEN_GAMMA * (position + 1).to(tl.uint64)) >> 32).to(tl.int64)


@triton.jit
def _share(total, top_p):
    parts = (tl.minimum(tl.maximum(top_p, 0.0), 1.0) * SHARE_ONE).to(tl.int64)
    high = (total >> SPLIT_BITS) * parts
    low = (total & SPLIT_MASK) * parts
    return tl.maximum((high << SHARE_SHIFT) + (low >> SHARE_BITS), 1)


@triton.jit
def _place(total, dice):
    high = (total >> SPLIT_BITS) * dice
    low = (total & SPLIT_MASK) * dice
    return (high + (low >> SPLIT_BITS)) >> PLACE_SHIFT


@triton.jit
def _threshold(
    row_ptr, maxima_ptr, low, high, needed, largest, slope,
    vocab: tl.constexpr, CHUNK: tl.constexpr, WEIGHS: tl.constexpr,
):  # fmt: skip
    """The largest key that counts (or weighs), with all larger ones, at least `needed`.

    low fulfils it, nothing above high does. Both are always keys that occur.
    """
    while low < high:
        middle = low + ((high.to(tl.int64) - low + 1) // 2).to(tl.int32)
        score = tl.zeros((), tl.int64)
        above, below = high, low
        for start in range(0, vocab, CHUNK):
            if _key(tl.load(maxima_ptr + start // CHUNK)) > low:
                logits = loaded_logits(row_ptr, start + tl.arange(0, CHUNK), vocab)
                keys = _key(logits)
                if WEIGHS:
                    measure = _weights(logits, largest, slope)
                else:
                    measure = tl.full(keys.shape, 1, tl.int64)
                score += tl.sum(tl.where(keys >= middle, measure, 0), axis=0)
                above = tl.minimum(above, tl.min(tl.where(keys >= middle, keys, high), axis=0))
                below = tl.maximum(below, tl.max(tl.where(keys < middle, keys, low), axis=0))
        if score >= needed:
            low = above
        else:
            high = below
    return low


@triton.jit
def _lowest(row_ptr, vocab: tl.constexpr, CHUNK: tl.constexpr):
    """The smallest key of a row."""
    lowest = tl.full((), LARGEST_KEY, tl.int32)
    for start in range(0, vocab, CHUNK):
        tokens = start + tl.arange(0, CHUNK)
        keys = _key(loaded_logits(row_ptr, tokens, vocab))
        lowest = tl.minimum(lowest, tl.min(tl.where(tokens < vocab, keys, LARGEST_KEY), axis=0))
    return lowest


@triton.jit
def _kept(row_ptr, start, floor, largest, slope, vocab: tl.constexpr, CHUNK: tl.constexpr):
    """The keys of a chunk, and its weights where a key reaches the floor, else 0."""
    tokens = start + tl.arange(0, CHUNK)
    logits = loaded_logits(row_ptr, tokens, vocab)
    keys = _key(logits)
    return keys, tl.where((keys >= floor) & (tokens < vocab), _weights(logits, largest, slope), 0)


@triton.jit
def _total(row_ptr, maxima_ptr, floor, largest, slope, vocab: tl.constexpr, CHUNK: tl.constexpr):
    """The sum of weights from the floor up, and the smallest key with one."""
    total = tl.zeros((), tl.int64)
    lowest = tl.full((), LARGEST_KEY, tl.int32)
    for start in range(0, vocab, CHUNK):
        if _key(tl.load(maxima_ptr + start // CHUNK)) >= floor:
            keys, weights = _kept(row_ptr, start, floor, largest, slope, vocab, CHUNK)
            total += tl.sum(weights, axis=0)
            lowest = tl.minimum(lowest, tl.min(tl.where(weights > 0, keys, LARGEST_KEY), axis=0))
    return total, lowest


@triton.jit
def _token_at(place, row_ptr, maxima_ptr, floor, largest, slope, vocab: tl.constexpr, CHUNK: tl.constexpr):
    """The token at a place on the row of kept weights, laid end to end."""
    token = tl.zeros((), tl.int32)
    passed = tl.zeros((), tl.int64)
    for start in range(0, vocab, CHUNK):
        if _key(tl.load(maxima_ptr + start // CHUNK)) >= floor:
            _, weights = _kept(row_ptr, start, floor, largest, slope, vocab, CHUNK)
            after = passed + tl.sum(weights, axis=0)
            if (place >= passed) & (place < after):
                ends = passed + tl.cumsum(weights, axis=0)
                token = start + tl.sum((ends <= place).to(tl.int32), axis=0)
            passed = after
    return token


@triton.jit
def _drawn(
    row_ptr, maxima_ptr, largest, temperature, top_k, top_p, dice, vocab: tl.constexpr, CHUNK: tl.constexpr
):  # fmt: skip
    slope = tl.div_rn(LOG2_E, temperature)
    high = _key(largest)
    floor = _lowest(row_ptr, vocab, CHUNK)
    if (top_k > 0) & (top_k < vocab):
        floor = _threshold(row_ptr, maxima_ptr, floor, high, top_k, largest, slope, vocab, CHUNK, WEIGHS=False)
    total, lowest = _total(row_ptr, maxima_ptr, floor, largest, slope, vocab, CHUNK)
    if top_p < 1.0:
        needed = _share(total, top_p)
        floor = _threshold(row_ptr, maxima_ptr, lowest, high, needed, largest, slope, vocab, CHUNK, WEIGHS=True)
        total, _ = _total(row_ptr, maxima_ptr, floor, largest, slope, vocab, CHUNK)
    return _token_at(_place(total, dice), row_ptr, maxima_ptr, floor, largest, slope, vocab, CHUNK)


@triton.jit
def _sample(
    logits_ptr, maxima_ptr, places_ptr, temperatures_ptr, top_ks_ptr, top_ps_ptr, seeds_ptr, positions_ptr, tokens_ptr,
    row_stride, vocab: tl.constexpr, CHUNK: tl.constexpr, chunks: tl.constexpr, CHUNKS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    maxima_ptr += row * chunks
    best = largest_chunk(maxima_ptr, chunks, CHUNKS)
    token = tl.load(places_ptr + row * chunks + best)
    temperature = tl.load(temperatures_ptr + row)
    if temperature > 0.0:
        token = _drawn(
            logits_ptr + row * row_stride, maxima_ptr, tl.load(maxima_ptr + best), temperature,
            tl.load(top_ks_ptr + row), tl.load(top_ps_ptr + row),
            _dice(tl.load(seeds_ptr + row), tl.load(positions_ptr + row)), vocab, CHUNK,
        )  # fmt: skip
    tl.store(tokens_ptr + row, token.to(tl.int64))


def sample(
    logits: Tensor, temperatures: Tensor, top_ks: Tensor, top_ps: Tensor, seeds: Tensor, positions: Tensor
) -> Tensor:
    """A token for each row of logits [S, vocab]; rows may stand apart, the other arguments are contiguous [S]."""
    num_rows, vocab = logits.shape
    tokens = torch.empty(num_rows, dtype=torch.int64, device=logits.device)
    if num_rows:
        maxima, places = chunk_maxima(logits)
        chunks = maxima.shape[1]
        _sample[(num_rows,)](
            logits, maxima, places, temperatures, top_ks, top_ps, seeds, positions, tokens, logits.stride(0),
            vocab=vocab, CHUNK=chunk_of(vocab), chunks=chunks, CHUNKS=triton.next_power_of_2(chunks), num_warps=16,
        )  # fmt: skip
    return tokens
