"""Drawing from a whole row, however flat it is: the thresholds by bisection over all of it.

A chunk without a logit above the threshold's lower bound is passed over unread.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .device_numbers import LARGEST_KEY, key_of, place_of, share_of, weights_of
from .greedy import loaded_logits


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
            if key_of(tl.load(maxima_ptr + start // CHUNK)) > low:
                logits = loaded_logits(row_ptr, start + tl.arange(0, CHUNK), vocab)
                keys = key_of(logits)
                if WEIGHS:
                    measure = weights_of(logits, largest, slope)
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
        keys = key_of(loaded_logits(row_ptr, tokens, vocab))
        lowest = tl.minimum(lowest, tl.min(tl.where(tokens < vocab, keys, LARGEST_KEY), axis=0))
    return lowest


@triton.jit
def _kept(row_ptr, start, floor, largest, slope, vocab: tl.constexpr, CHUNK: tl.constexpr):
    """The keys of a chunk, and its weights where a key reaches the floor, else 0."""
    tokens = start + tl.arange(0, CHUNK)
    logits = loaded_logits(row_ptr, tokens, vocab)
    keys = key_of(logits)
    return keys, tl.where((keys >= floor) & (tokens < vocab), weights_of(logits, largest, slope), 0)


@triton.jit
def _total(row_ptr, maxima_ptr, floor, largest, slope, vocab: tl.constexpr, CHUNK: tl.constexpr):
    """The sum of weights from the floor up, and the smallest key with one."""
    total = tl.zeros((), tl.int64)
    lowest = tl.full((), LARGEST_KEY, tl.int32)
    for start in range(0, vocab, CHUNK):
        if key_of(tl.load(maxima_ptr + start // CHUNK)) >= floor:
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
        if key_of(tl.load(maxima_ptr + start // CHUNK)) >= floor:
            _, weights = _kept(row_ptr, start, floor, largest, slope, vocab, CHUNK)
            after = passed + tl.sum(weights, axis=0)
            if (place >= passed) & (place < after):
                ends = passed + tl.cumsum(weights, axis=0)
                token = start + tl.sum((ends <= place).to(tl.int32), axis=0)
            passed = after
    return token


@triton.jit
def drawn_from_whole_row(
    row_ptr, maxima_ptr, largest, slope, top_k, top_p, dice, vocab: tl.constexpr, CHUNK: tl.constexpr
):  # fmt: skip
    """A token of what top-k (0: none) and top-p keep."""
    floor = _lowest(row_ptr, vocab, CHUNK)
    high = key_of(largest)
    if top_k > 0:
        floor = _threshold(row_ptr, maxima_ptr, floor, high, top_k, largest, slope, vocab, CHUNK, WEIGHS=False)
    total, lowest = _total(row_ptr, maxima_ptr, floor, largest, slope, vocab, CHUNK)
    if top_p < 1.0:
        needed = share_of(total, top_p)
        floor = _threshold(row_ptr, maxima_ptr, lowest, high, needed, largest, slope, vocab, CHUNK, WEIGHS=True)
        total, _ = _total(row_ptr, maxima_ptr, floor, largest, slope, vocab, CHUNK)
    return _token_at(place_of(total, dice), row_ptr, maxima_ptr, floor, largest, slope, vocab, CHUNK)
