"""Many small arrays to the device in one copy."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Ints = NDArray[np.int64]
NUM_BUFFERS = 4
"""Pinned buffers in turn: more than steps can be under way."""


class Uploader:
    """Packs int64 arrays, copies them to the device at once, hands them out as views."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._buffers: list[Tensor] = []
        self._turn = 0

    def send(self, arrays: list[Ints]) -> list[Tensor]:
        """The arrays as tensors on the device, each [its length] int64. Does not wait for the copy."""
        sizes = [len(array) for array in arrays]
        if self._device.type == "cpu":
            return [torch.from_numpy(array) for array in arrays]
        total = sum(sizes)
        buffer = self._buffer(total)
        packed = buffer.numpy()
        at = 0
        for array, size in zip(arrays, sizes, strict=True):
            packed[at : at + size] = array
            at += size
        return list(buffer[:total].to(self._device, non_blocking=True).split(sizes))

    def _buffer(self, size: int) -> Tensor:
        """A pinned buffer that no copy under way reads from."""
        self._turn = (self._turn + 1) % NUM_BUFFERS
        while len(self._buffers) < NUM_BUFFERS:
            self._buffers.append(torch.empty(1 << 14, dtype=torch.int64, pin_memory=True))
        if self._buffers[self._turn].numel() < size:
            grown = 1 << (size - 1).bit_length()
            self._buffers[self._turn] = torch.empty(grown, dtype=torch.int64, pin_memory=True)
        return self._buffers[self._turn]
