"""Several prompts' chunks in one step as the one chunk that is as much work: kernels are measured with one at a time.

Attention's work is its (query, key) pairs, and a prompt's queries see no other prompt's keys:

    one chunk    q queries behind kv cached tokens       rows(q) (kv + q / 2) pairs
    several      the sum of theirs; so together they are as one of all their queries behind fewer cached tokens,
                 less than none where all are new: then there are fewer pairs than even the causal triangle has

rows(q) is q rounded up to tiles of 128 queries, of which FlashAttention computes whole ones (Dao 2023, section 3.3):
small chunks add up as the tiles that they fill.
"""

from __future__ import annotations

from collections.abc import Sequence

TILE_ROWS = 128


def joined(chunks: Sequence[tuple[int, int]]) -> tuple[int, float]:
    """Queries and cached tokens, below zero where there are fewer pairs; a single chunk's own."""
    if len(chunks) == 1:
        return chunks[0]
    q_tokens = sum(q for q, _ in chunks)
    if not q_tokens:
        return 0, 0
    pairs = sum(_rows(q) * (kv + q / 2) for q, kv in chunks)
    return q_tokens, pairs / _rows(q_tokens) - q_tokens / 2


def _rows(q_tokens: int) -> int:
    return -(-q_tokens // TILE_ROWS) * TILE_ROWS
