"""Who works on which keys in decode attention: equal shares of one long row of tiles, worked out on the device.

A tile is `config.tile` consecutive tokens of one sequence. The tiles of all sequences stand in one row, and each of a
fixed number of programs (times KV heads) takes the same number of them, wherever sequences begin and end:

    sequences   |0 0 0 0 0 0 0|1|2 2 2 2|        12 tiles, 3 programs, a share of 4
    programs    |0 0 0 0|1 1 1 1|2 2 2 2|        program 1 works on sequences 0, 1 and 2
    slots        0       1     2 3 4             of partial results: program + sequence, so no two share one

So all programs are resident at once and end together, for one sequence of 100k tokens as for a batch of uneven ones,
and the grid depends on neither: it can be captured in a CUDA graph. Each program finds its share from all the lengths,
for a launch that wrote a plan would take longer than that; nothing is read on the host.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from .tuning import DecodeConfig, decode_config, num_multiprocessors


@dataclass(frozen=True, slots=True)
class DecodeWorkspace:
    """Memory that decode attention keeps from step to step, at places that a CUDA graph may remember.

    Made once; serves any batch of up to `max_num_sequences`. Layers may share it, streams may not.
    """

    config: DecodeConfig
    max_num_sequences: int
    num_programs: int
    """For each KV head."""
    tile_starts: Tensor
    """[S + 1] int32: each sequence's first tile in the row, then how many there are; for the joining of parts."""
    share: Tensor
    """[1] int32: tiles a program."""
    partial_total: Tensor
    """[slots, H, D] fp32: the weighted sum of values that a program finds of a sequence that others work on too."""
    partial_highest: Tensor
    """[slots, H] fp32: the highest score, unscaled, that those weights are relative to."""
    partial_weight: Tensor
    """[slots, H] fp32: their sum; see `joining`."""

    @staticmethod
    def allocate(
        max_num_sequences: int,
        num_heads: int,
        num_kv_heads: int,
        head_dim: int,
        dtype: torch.dtype,
        device: torch.device,
        config: DecodeConfig | None = None,
    ) -> DecodeWorkspace:
        """A workspace for one model on one device; 5 MB for 256 sequences and 32 heads of 128 on an H200."""
        config = config or decode_config(device, head_dim, dtype, num_heads // num_kv_heads)
        resident = config.programs_per_multiprocessor * num_multiprocessors(device)
        num_programs = max(1, resident // num_kv_heads)
        num_slots = num_programs + max_num_sequences
        return DecodeWorkspace(
            config=config,
            max_num_sequences=max_num_sequences,
            num_programs=num_programs,
            tile_starts=torch.zeros(max_num_sequences + 1, dtype=torch.int32, device=device),
            share=torch.zeros(1, dtype=torch.int32, device=device),
            partial_total=torch.empty(num_slots, num_heads, head_dim, dtype=torch.float32, device=device),
            partial_highest=torch.empty(num_slots, num_heads, dtype=torch.float32, device=device),
            partial_weight=torch.empty(num_slots, num_heads, dtype=torch.float32, device=device),
        )


@triton.jit
def share_of(
    context_lens_ptr, num_sequences, program, num_programs,
    TILE: tl.constexpr, LEAST_SHARE: tl.constexpr, SEQUENCES: tl.constexpr,
):  # fmt: skip
    """Tiles a program, this one's first and the end of its tiles; whose the first is, and where that sequence begins.

    Last the ends of all sequences in the row [SEQUENCES], for one program to keep.
    """
    sequence = tl.arange(0, SEQUENCES)
    lengths = tl.load(context_lens_ptr + sequence, mask=sequence < num_sequences, other=0)
    tiles = tl.cdiv(lengths, TILE)
    num_tiles = tl.sum(tiles, 0)
    ends = tl.cumsum(tiles, 0)
    share = tl.maximum(tl.cdiv(num_tiles, num_programs), LEAST_SHARE)
    first = program * share
    is_before = ends <= first
    before = tl.sum(is_before.to(tl.int32), 0)
    begin = tl.sum(tl.where(is_before, tiles, 0), 0)
    return share, first, tl.minimum(first + share, num_tiles), before, begin, ends
