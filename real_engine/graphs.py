"""CUDA graphs of steps that only decode, one for each of a few batch sizes; smaller batches are padded."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..kernels.contract import Kernels

Decode = Callable[[int, bool], Tensor]
"""`(rows, is_random) -> [rows + 1]`: a step for the first rows of the decode batch."""


def can_capture(device: torch.device, kernels: Kernels) -> bool:
    """Whether a step of decodes on this device, by these kernels, can become a CUDA graph."""
    return device.type == "cuda" and not kernels.waits


def buckets(max_rows: int) -> list[int]:
    """Batch sizes that get a graph, up to `max_rows`; close enough for padding to stay below an eighth from 32 on."""
    sizes = [1, 2, 4]
    while sizes[-1] < max_rows:
        last = sizes[-1]
        sizes.append(last + max(4, 1 << max(0, last.bit_length() - 4)))
    return [size for size in sizes if size < max_rows] + [max_rows]


class DecodeGraph:
    """One captured step. What it reads and writes has a fixed address."""

    def __init__(self, decode: Decode, num_rows: int, pool: Any) -> None:
        self._graph = torch.cuda.CUDAGraph()
        decode(num_rows, False)  # compiles and allocates what a capture must not
        torch.cuda.synchronize()
        self._capture(decode, num_rows, pool)
        self._graph.replay()  # the first replay uploads the graph

    def _capture(self, decode: Decode, num_rows: int, pool: Any) -> None:
        """What goes wrong inside is what is told: torch tells of the broken capture alone."""
        failure: Exception | None = None
        try:
            with torch.cuda.graph(self._graph, pool=pool):
                try:
                    self._out = decode(num_rows, False)
                except Exception as error:
                    failure = error
                    raise
        except Exception as error:
            if failure is None:
                raise
            raise failure from error

    def replay(self, num_members: int) -> Tensor:
        """Run it; the tokens of the first `num_members` rows, and whether all was finite. Its own memory."""
        self._graph.replay()
        return torch.cat([self._out[:num_members], self._out[-1:]])


class DecodeGraphs:
    """Captures graphs before the first step, with an empty decode batch: nothing is written but padding."""

    def __init__(self, decode: Decode, max_rows: int) -> None:
        pool = torch.cuda.graph_pool_handle()
        self._sizes = buckets(max_rows)
        # The largest first: the others fit its memory.
        self._graphs = {size: DecodeGraph(decode, size, pool) for size in reversed(self._sizes)}

    def fitting(self, num_rows: int, *, is_random: bool) -> DecodeGraph | None:
        """The graph for so many rows; None for none, and where rows are random: these run without one."""
        if not num_rows or is_random:
            return None
        return self._graphs[self._sizes[bisect_left(self._sizes, num_rows)]]
