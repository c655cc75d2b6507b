"""The few thousand likeliest tokens of a row, found by all programs together, so that one program can end the work.

Logits are counted by how far below the largest they are, in 255 bins of 1/8, the rest in a last one. The candidates are
the tokens of the first bins, as many bins as hold no more than `ROOM` tokens together. They are written in the order of
the vocabulary, each at a place that the counts tell, so no two programs have to agree on anything.

    maxima [S, chunks] fp32   of `greedy`                totals [S, chunks] int64   weights of each chunk, added up
    counts [S, chunks, BINS] int32                       found [S] int32            how many candidates a row has
    tokens [S, ROOM] int32, logits [S, ROOM] fp32        the candidates; undefined from `found` on

Rows of temperature 0 are left out, and those with neither top-k nor top-p need no candidates: their totals suffice.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from .device_numbers import LOG2_E, weights_of
from .greedy import chunk_of, largest_chunk, loaded_logits

BINS = tl.constexpr(256)
BINS_PER_UNIT = tl.constexpr(8.0)
ROOM = tl.constexpr(4096)


@triton.jit
def _bin_of(logits, largest):
    distance = tl.where(logits == largest, 0.0, largest - logits)
    return tl.minimum(distance * BINS_PER_UNIT, BINS - 1.0).to(tl.int32)


@triton.jit
def is_cut(top_k, top_p, vocab: tl.constexpr):
    """Whether top-k or top-p leaves out anything."""
    return ((top_k > 0) & (top_k < vocab)) | (top_p < 1.0)


@triton.jit
def _weigh(
    logits_ptr, maxima_ptr, temperatures_ptr, top_ks_ptr, top_ps_ptr, totals_ptr, counts_ptr, row_stride,
    vocab: tl.constexpr, CHUNK: tl.constexpr, chunks: tl.constexpr, CHUNKS: tl.constexpr,
):  # fmt: skip
    """Adds up the weights of one chunk, and counts its logits by bins."""
    row, chunk = tl.program_id(0).to(tl.int64), tl.program_id(1)
    temperature = tl.load(temperatures_ptr + row)
    if temperature > 0.0:
        largest = tl.load(maxima_ptr + row * chunks + largest_chunk(maxima_ptr + row * chunks, chunks, CHUNKS))
        tokens = chunk * CHUNK + tl.arange(0, CHUNK)
        logits = loaded_logits(logits_ptr + row * row_stride, tokens, vocab)
        weights = weights_of(logits, largest, tl.div_rn(LOG2_E, temperature))
        place = row * chunks + chunk
        tl.store(totals_ptr + place, tl.sum(tl.where(tokens < vocab, weights, 0), axis=0))
        if is_cut(tl.load(top_ks_ptr + row), tl.load(top_ps_ptr + row), vocab):
            bins = tl.where(tokens < vocab, _bin_of(logits, largest), BINS - 1)
            tl.store(counts_ptr + place * BINS + tl.arange(0, BINS), tl.histogram(bins, BINS))


@triton.jit
def _gather(
    logits_ptr, maxima_ptr, temperatures_ptr, top_ks_ptr, top_ps_ptr, counts_ptr, found_ptr, tokens_ptr, values_ptr,
    row_stride, vocab: tl.constexpr, CHUNK: tl.constexpr, chunks: tl.constexpr, CHUNKS: tl.constexpr,
):  # fmt: skip
    """Writes the candidates of one chunk after those of the chunks before it."""
    row, chunk = tl.program_id(0).to(tl.int64), tl.program_id(1)
    cut = is_cut(tl.load(top_ks_ptr + row), tl.load(top_ps_ptr + row), vocab)
    if (tl.load(temperatures_ptr + row) > 0.0) & cut:
        index = tl.arange(0, BINS)
        number = tl.arange(0, CHUNKS)[:, None]
        counts = tl.load(counts_ptr + (row * chunks + number) * BINS + index[None, :], mask=number < chunks, other=0)
        of_bin = tl.sum(counts, axis=0)
        num_bins = tl.sum(((tl.cumsum(of_bin, axis=0) <= ROOM) & (index < BINS - 1)).to(tl.int32), axis=0)
        before = tl.sum(tl.sum(tl.where((number < chunk) & (index[None, :] < num_bins), counts, 0), axis=0), axis=0)
        if chunk == 0:
            tl.store(found_ptr + row, tl.sum(tl.where(index < num_bins, of_bin, 0), axis=0))

        largest = tl.load(maxima_ptr + row * chunks + largest_chunk(maxima_ptr + row * chunks, chunks, CHUNKS))
        tokens = chunk * CHUNK + tl.arange(0, CHUNK)
        logits = loaded_logits(logits_ptr + row * row_stride, tokens, vocab)
        chosen = (_bin_of(logits, largest) < num_bins) & (tokens < vocab)
        places = row * ROOM + before + tl.cumsum(chosen.to(tl.int32), axis=0) - 1
        tl.store(tokens_ptr + places, tokens, mask=chosen)
        tl.store(values_ptr + places, logits, mask=chosen)


@dataclass(frozen=True, slots=True)
class Candidates:
    """What is known of each row before one program draws from it; shapes as above."""

    totals: Tensor
    found: Tensor
    tokens: Tensor
    logits: Tensor


def candidates_of(
    logits: Tensor, maxima: Tensor, temperatures: Tensor, top_ks: Tensor, top_ps: Tensor
) -> Candidates:  # fmt: skip
    """The candidates of each row of logits [S, vocab], S at least 1."""
    num_rows, vocab = logits.shape
    chunks = maxima.shape[1]
    device = logits.device
    counts = torch.empty((num_rows, chunks, BINS.value), dtype=torch.int32, device=device)
    candidates = Candidates(
        totals=torch.empty((num_rows, chunks), dtype=torch.int64, device=device),
        found=torch.empty(num_rows, dtype=torch.int32, device=device),
        tokens=torch.empty((num_rows, ROOM.value), dtype=torch.int32, device=device),
        logits=torch.empty((num_rows, ROOM.value), dtype=torch.float32, device=device),
    )
    sizes = {"vocab": vocab, "CHUNK": chunk_of(vocab), "chunks": chunks, "CHUNKS": triton.next_power_of_2(chunks)}
    asked = (temperatures, top_ks, top_ps)
    _weigh[(num_rows, chunks)](
        logits, maxima, *asked, candidates.totals, counts, logits.stride(0), **sizes, num_warps=8
    )  # fmt: skip
    _gather[(num_rows, chunks)](
        logits, maxima, *asked, counts, candidates.found, candidates.tokens, candidates.logits, logits.stride(0),
        **sizes, num_warps=8,
    )  # fmt: skip
    return candidates
