"""How fast a device copies and multiplies at best: floors for kernels on a device without a data sheet."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import torch

from ..streams import host_clock

COPY_BYTES = (1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26, 1 << 28)
LARGE_BYTES = 1 << 28
"""More than caches hold."""
MATRIX = {"cpu": 512, "cuda": 8192}
BUDGET_S = 0.4
"""Of each figure; the best of all tries counts."""


class Peaks(NamedTuple):
    """The best of several tries."""

    copy_bytes_per_s: float
    """Read and written, of whatever size goes fastest: what fits a cache is not bound by the memory, and no kernel may
    beat its floor."""
    host_link_bytes_per_s: float
    """From pinned host memory to a GPU, one way; on a CPU a copy of what fits no cache."""
    flop_per_s: dict[str, float]
    """Of a square matrix product, by torch's name of the dtype."""


def measure_peaks(device: torch.device) -> Peaks:
    """Copies and products on a device that does nothing else."""
    copies = {size: _copy_rate(size, device) for size in COPY_BYTES}
    products = {name: _product_rate(dtype, device) for name, dtype in _DTYPES.items()}
    link = _host_link_rate(device) if device.type == "cuda" else copies[LARGE_BYTES]
    return Peaks(max(copies.values()), link, products)


_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def _copy_rate(num_bytes: int, device: torch.device) -> float:
    source = torch.ones(num_bytes // 4, dtype=torch.float32, device=device)
    target = torch.empty_like(source)
    repeats = max(1, (1 << 24) // num_bytes)

    def copies() -> None:
        for _ in range(repeats):
            target.copy_(source)

    return 2 * num_bytes * repeats / _best_s(copies, device)


def _host_link_rate(device: torch.device) -> float:
    source = torch.ones(LARGE_BYTES // 4, dtype=torch.float32, pin_memory=True)
    target = torch.empty_like(source, device=device)
    return LARGE_BYTES / _best_s(lambda: target.copy_(source, non_blocking=True), device)


def _product_rate(dtype: torch.dtype, device: torch.device) -> float:
    size = MATRIX[device.type]
    left, right = (torch.ones(size, size, dtype=dtype, device=device) for _ in range(2))
    return 2 * size**3 / _best_s(lambda: left @ right, device)


def _best_s(work: Callable[[], object], device: torch.device) -> float:
    clock = time.perf_counter_ns if device.type == "cuda" else host_clock()
    work()
    times: list[int] = []
    deadline = time.monotonic() + BUDGET_S
    while time.monotonic() < deadline or not times:
        _settle(device)
        start_ns = clock()
        work()
        _settle(device)
        times.append(clock() - start_ns)
    return min(times) / 1e9


def _settle(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
