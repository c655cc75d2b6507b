"""What a device remembers from step to step: block tables, contexts, last tokens, who is in the decode batch.

R           rows, row 0 of nobody
tables      [R, max_blocks] int32
contexts    [R] int64        tokens computed of members of the decode batch
tokens      [R] int64        the latest token, input of the next decode
members     [R - 1] int64    rows of the decode batch, 0 behind them
info        [R, 6] int64     one line a request, below
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..policies.core.sequence import Sequence
from .contents import content_key
from .mirror import Changes
from .sampling_params import SamplingParams
from .upload import Uploader

Ints = NDArray[np.int64]
KEY, PROMPT, SEED, TOP_K, TEMPERATURE, TOP_P = range(6)
"""Columns of `info`; the last two are fp64 by their bits."""


class DeviceState:
    """Tensors that steps read and change in place; their addresses never change, so graphs may hold them."""

    def __init__(self, num_rows: int, max_blocks: int, device: torch.device) -> None:
        self.device = device
        self.tables = torch.zeros(num_rows + 1, max_blocks, dtype=torch.int32, device=device)
        self.contexts = torch.zeros(num_rows + 1, dtype=torch.int64, device=device)
        self.tokens = torch.zeros(num_rows + 1, dtype=torch.int64, device=device)
        self.members = torch.zeros(num_rows, dtype=torch.int64, device=device)
        self.info = torch.zeros(num_rows + 1, 6, dtype=torch.int64, device=device)
        self.info[:, TOP_P] = float_bits(1.0)

    def apply(self, changes: Changes, lines: Ints, uploader: Uploader) -> None:
        """Write what a plan changed of rows, tables and members. lines [new rows, 6]: their `info`."""
        rows = np.array([row for row, _ in changes.new_rows], np.int64)
        places = np.fromiter(changes.members, np.int64, len(changes.members))
        moved = np.fromiter(changes.members.values(), np.int64, len(changes.members))
        at, blocks = _flat(changes.tables)
        if not rows.size and not places.size and not at.size:
            return
        sent = uploader.send([rows, lines.reshape(-1), places, moved, at, blocks])
        if rows.size:
            self.info[sent[0]] = sent[1].view(-1, 6)
        if places.size:
            self.members[sent[2]] = sent[3]
        if at.size:
            self.tables.view(-1)[sent[4]] = sent[5].to(torch.int32)

    def sampling(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Temperatures [S] fp32, top_ks [S] int32, top_ps [S] fp32 and seeds [S] int64 of rows [S], each contiguous."""
        lines = self.info[rows]
        temperatures = lines[:, TEMPERATURE].contiguous().view(torch.float64).to(torch.float32)
        top_ps = lines[:, TOP_P].contiguous().view(torch.float64).to(torch.float32)
        return temperatures, lines[:, TOP_K].to(torch.int32), top_ps, lines[:, SEED].contiguous()


def _flat(tables: list[tuple[int, list[int]]]) -> tuple[Ints, Ints]:
    """Flat indices and values of the table entries that have changed, in order of the changes."""
    if not tables:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    entries: dict[int, int] = {}  # the last one counts: the order of a scattered write is not defined
    for start, blocks in tables:
        entries.update(zip(range(start, start + len(blocks)), blocks, strict=True))
    count = len(entries)
    return np.fromiter(entries, np.int64, count), np.fromiter(entries.values(), np.int64, count)


def info_line(sequence: Sequence, params: SamplingParams) -> list[int]:
    """A request's line of `info`."""
    key = content_key(sequence.request.output_content)
    bits = (float_bits(params.temperature), float_bits(params.top_p))
    return [key, sequence.prompt_tokens, params.seed, params.top_k, *bits]


def float_bits(value: float) -> int:
    """A number's fp64 representation, as a signed integer."""
    return int(np.float64(value).view(np.int64))
