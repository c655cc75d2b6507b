"""The likeliest token of each row as two Triton kernels: of each chunk of the vocabulary, then of the chunks.

    logits [S, vocab] fp32, bf16, fp16 -> [S] int64, the first of equals; a NaN counts as the least likely
    maxima [S, chunks] fp32, places [S, chunks] int32: the largest logit of each chunk and its token

A program reads a chunk, then a program each row its chunks: a single row, too, keeps many processors busy.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

LARGEST_CHUNK = 4096


@triton.jit
def loaded_logits(row_ptr, tokens, vocab: tl.constexpr):
    """Logits of tokens in fp32: NaNs and what lies beyond the vocabulary as -inf, -0 as 0."""
    logits = tl.load(row_ptr + tokens, mask=tokens < vocab, other=float("-inf")).to(tl.float32)
    logits = tl.where(logits != logits, float("-inf"), logits)
    return tl.where(logits == 0.0, 0.0, logits)


@triton.jit
def largest_chunk(maxima_ptr, chunks: tl.constexpr, CHUNKS: tl.constexpr):
    """The first chunk of a row that holds its largest logit."""
    numbers = tl.arange(0, CHUNKS)
    return tl.argmax(tl.load(maxima_ptr + numbers, mask=numbers < chunks, other=float("-inf")), axis=0)


@triton.jit
def _chunk_maxima(logits_ptr, maxima_ptr, places_ptr, row_stride, vocab: tl.constexpr, CHUNK: tl.constexpr):
    row, chunk = tl.program_id(0).to(tl.int64), tl.program_id(1)
    tokens = chunk * CHUNK + tl.arange(0, CHUNK)
    logits = loaded_logits(logits_ptr + row * row_stride, tokens, vocab)
    place = row * tl.num_programs(1) + chunk
    tl.store(maxima_ptr + place, tl.max(logits, axis=0))
    tl.store(places_ptr + place, chunk * CHUNK + tl.argmax(logits, axis=0))


@triton.jit
def _largest(maxima_ptr, places_ptr, tokens_ptr, chunks: tl.constexpr, CHUNKS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    chunk = largest_chunk(maxima_ptr + row * chunks, chunks, CHUNKS)
    tl.store(tokens_ptr + row, tl.load(places_ptr + row * chunks + chunk).to(tl.int64))


def greedy(logits: Tensor) -> Tensor:
    """The likeliest token of each row of logits [S, vocab]; rows may stand apart."""
    num_rows = logits.shape[0]
    tokens = torch.empty(num_rows, dtype=torch.int64, device=logits.device)
    if num_rows:
        maxima, places = chunk_maxima(logits)
        chunks = maxima.shape[1]
        _largest[(num_rows,)](maxima, places, tokens, chunks=chunks, CHUNKS=triton.next_power_of_2(chunks), num_warps=1)
    return tokens


def chunk_of(vocab: int) -> int:
    """How many tokens of a vocabulary make a chunk."""
    return min(LARGEST_CHUNK, int(triton.next_power_of_2(vocab)))


def chunk_maxima(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Each chunk's largest logit and its first token; logits has at least one row."""
    num_rows, vocab = logits.shape
    chunk = chunk_of(vocab)
    shape = (num_rows, triton.cdiv(vocab, chunk))
    maxima = torch.empty(shape, dtype=torch.float32, device=logits.device)
    places = torch.empty(shape, dtype=torch.int32, device=logits.device)
    _chunk_maxima[shape](logits, maxima, places, logits.stride(0), vocab=vocab, CHUNK=chunk, num_warps=8)
    return maxima, places
