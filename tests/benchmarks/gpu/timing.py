"""How long a launch takes: medians over rotating inputs, by events on a GPU, by the clock on a CPU."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median

import torch

Launch = Callable[[], object]


class Timer:
    """Times launches on one device."""

    def __init__(self, device: torch.device, repeats: int = 20) -> None:
        self.device = device
        self.repeats = repeats if device.type == "cuda" else 3

    def seconds(self, launches: Sequence[Launch]) -> float:
        """Median of single launches, taken in turn: give several on different memory, so that no cache holds it."""
        for launch in launches[:3]:
            launch()
        times = [self._one(launches[i % len(launches)]) for i in range(max(self.repeats, len(launches)))]
        return median(times)

    def _one(self, launch: Launch) -> float:
        if self.device.type != "cuda":
            begin = time.perf_counter()
            launch()
            return time.perf_counter() - begin
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(2_000_000)  # the queue is never empty when the launch is measured
        start.record()
        launch()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) / 1e3

    def copy_bytes_per_s(self, num_bytes: int) -> float:
        """Bytes read and written a second by a plain copy of so many bytes."""
        pairs = [torch.empty(2, num_bytes // 4, dtype=torch.float32, device=self.device).normal_() for _ in range(2)]
        seconds = self.seconds([lambda pair=pair: pair[1].copy_(pair[0]) for pair in pairs])  # type: ignore[misc]
        return 2 * num_bytes / seconds
