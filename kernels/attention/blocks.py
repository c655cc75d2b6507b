"""Where the tokens of a tile of keys stand in the paged cache: shared by both attention kernels."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def block_of(table, start, token, length, BLOCK_SIZE: tl.constexpr, TILE: tl.constexpr):
    """Which blocks the tokens `start + token` are in, [TILE] int32; one number where the tile lies within a block.

    Past the end of a sequence of `length` tokens it is that of its last one: only valid entries of the table are read.
    """
    if BLOCK_SIZE >= TILE:
        block = tl.load(table + tl.minimum(start, length - 1) // BLOCK_SIZE)
    else:
        block = tl.load(table + tl.minimum(start + token, length - 1) // BLOCK_SIZE)
    return block
