"""Who works on which keys in decode attention: equal shares of one long row of tiles, worked out on the device.

A tile is `config.tile` consecutive tokens of one sequence. The tiles of all sequences stand in one row, and each of a
fixed number of programs (times KV heads) takes the same number of them, wherever sequences begin and end:

    sequences   |0 0 0 0 0 0 0|1|2 2 2 2|        12 tiles, 3 programs, a share of 4
    programs    |0 0 0 0|1 1 1 1|2 2 2 2|        program 1 works on sequences 0, 1 and 2
    slots        0       1     2 3 4             of partial results: program + sequence, so no two share one

So all programs are resident at once and end together, for one sequence of 100k tokens as for a batch of uneven ones,
and the grid depends on neither: it can be captured in a CUDA graph. Nothing is read on the host.

    tile_starts     [S + 1] int32: of each sequence's first tile in the row; then how many tiles there are
    first_sequence  [programs] int32: whose tile each program starts with; undefined past the last tile
    share           [1] int32: tiles a program
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
    first_sequence: Tensor
    share: Tensor
    partial_total: Tensor
    """[slots, H, D] fp32: the weighted sum of values that a program finds of a sequence that others work on too."""
    partial_highest: Tensor
    """[slots, H] fp32: the highest score, unscaled, that those weights are relative to."""
    partial_weight: Tensor
    """[slots, H] fp32: their sum. A logarithm of it, added to the highest score, would round away digits of fp32."""

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
            first_sequence=torch.zeros(num_programs, dtype=torch.int32, device=device),
            share=torch.zeros(1, dtype=torch.int32, device=device),
            partial_total=torch.empty(num_slots, num_heads, head_dim, dtype=torch.float32, device=device),
            partial_highest=torch.empty(num_slots, num_heads, dtype=torch.float32, device=device),
            partial_weight=torch.empty(num_slots, num_heads, dtype=torch.float32, device=device),
        )


def plan_decode(context_lens: Tensor, workspace: DecodeWorkspace) -> None:
    """Puts into the workspace who works on what, for contexts [S] int32. One launch, of one program."""
    num_sequences = context_lens.shape[0]
    assert num_sequences <= workspace.max_num_sequences, f"{num_sequences} sequences, {workspace.max_num_sequences} fit"
    config = workspace.config
    _plan[(1,)](
        context_lens, workspace.tile_starts, workspace.first_sequence, workspace.share,
        num_sequences, workspace.num_programs,
        TILE=config.tile, LEAST_SHARE=config.least_share, SEQUENCES=triton.next_power_of_2(num_sequences),
        num_warps=4,
    )  # fmt: skip


@triton.jit(do_not_specialize=["num_sequences", "num_programs"])
def _plan(
    context_lens_ptr, tile_starts_ptr, first_sequence_ptr, share_ptr, num_sequences, num_programs,
    TILE: tl.constexpr, LEAST_SHARE: tl.constexpr, SEQUENCES: tl.constexpr,
):  # fmt: skip
    sequence = tl.arange(0, SEQUENCES)
    exists = sequence < num_sequences
    tiles = tl.cdiv(tl.load(context_lens_ptr + sequence, mask=exists, other=0), TILE)
    end = tl.cumsum(tiles, 0)
    share = tl.maximum(tl.cdiv(tl.sum(tiles, 0), num_programs), LEAST_SHARE)
    tl.store(share_ptr, share)
    tl.store(tile_starts_ptr + sequence, end - tiles, mask=exists)
    tl.store(tile_starts_ptr + sequence + 1, end, mask=sequence == num_sequences - 1)
    # The programs whose first tile lies in the sequence; a short one may have none.
    program = tl.cdiv(end - tiles, share)
    until = tl.cdiv(end, share)
    for _ in range(tl.max(until - program, 0)):
        tl.store(first_sequence_ptr + program, sequence, mask=program < until)
        program += 1
