"""A device and a model set up for timing: what the study asks, step by step."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from ...kernels.contract import Kernels
from ...policies.core.model_spec import ModelSpec
from ..graphs import buckets
from ..model.loading import load_model
from .bench import StepBench, block_bytes, blocks_of
from .facts import clock, device_name, versions
from .grids import Grid, steps_of
from .host_costs import HostCost, host_costs
from .memory import SHARE, free_bytes, is_out_of_memory, total_bytes
from .peaks import Peaks, measure_peaks
from .steps import TimedStep
from .visit import Visit, visit

DeviceName = Literal["cpu", "cuda"]
DtypeName = Literal["float32", "bfloat16", "float16"]
DTYPES: dict[DtypeName, torch.dtype] = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


class CannotProfile(ValueError):
    """The device is not there, or the model has no room on it; one line."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What was measured on what, as it stands in a profile."""

    device: str
    clock: str | None
    software: str
    memory_bytes: int
    graph_sizes: tuple[int, ...]
    """Batch sizes with a CUDA graph; empty on a CPU."""


class ProfileSession:
    """One model on one device. The model's weights are random: no kernel's time depends on them."""

    def __init__(
        self,
        source: Path | ModelSpec,
        *,
        device: DeviceName,
        dtype: DtypeName,
        threads: int,
        kernels_of: Callable[[torch.device], Kernels],
    ) -> None:
        """Raises CannotProfile, and ModelError where the engine does not compute the model."""
        if device == "cuda" and not torch.cuda.is_available():
            raise CannotProfile("--device cuda: torch sees no GPU here; choose cpu")
        torch.set_num_threads(threads)
        self.device, self.dtype = torch.device(device), DTYPES[dtype]
        self.kernels = kernels_of(self.device)
        try:
            self.model = load_model(
                source, device=self.device, dtype=self.dtype, seed=0, kernels=self.kernels, random=True
            )
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise CannotProfile(
                f"the weights of {source} do not fit the memory of {device_name(self.device)}"
            ) from None
        self._bench: StepBench | None = None

    @property
    def spec(self) -> ModelSpec:
        """The model's shapes."""
        return self.model.config.spec

    def facts(self, max_rows: int) -> Facts:
        """What the device says of itself; `max_rows`: decodes of the largest batch."""
        sizes = tuple(buckets(max_rows)) if self.device.type == "cuda" else ()
        device = self.device
        return Facts(device_name(device), clock(device), versions(), total_bytes(device), sizes)

    def steps(self, grid: Grid, seed: int) -> list[TimedStep]:
        """The grid's steps that the model has positions for."""
        return steps_of(grid, self.spec.max_position_embeddings, seed)

    def set_up(self, steps: list[TimedStep]) -> list[TimedStep]:
        """Make room for the steps; those that there is no memory for are left out and returned."""
        room = int(SHARE * free_bytes(self.device)) // block_bytes(self.model)
        fitting = [step for step in steps if blocks_of(step) < room]
        while fitting:
            largest = max(map(blocks_of, fitting))
            try:
                self._bench = self._bench_for(fitting, largest)
                break
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                fitting = [step for step in fitting if blocks_of(step) < largest]
        if not fitting:
            raise CannotProfile(f"{device_name(self.device)} has no memory for KV beside the weights")
        known = set(fitting)
        return [step for step in steps if step not in known]

    def _bench_for(self, steps: list[TimedStep], largest: int) -> StepBench:
        longest = max(length for step in steps for length in step.lengths)
        return StepBench(self.model, largest + 1, max(step.num_rows for step in steps), longest)

    def visit(self, step: TimedStep, budget_s: float, *, is_first: bool) -> Visit:
        """Time a step that `set_up` has made room for."""
        assert self._bench is not None, "set_up comes first"
        return visit(self._bench, step, budget_s, is_first=is_first)

    def host_costs(self, batches: tuple[int, ...]) -> list[HostCost]:
        """What the host spends on a step, by batch."""
        return host_costs(batches, self.device, self.dtype, self.kernels)

    def peaks(self) -> Peaks:
        """How fast the device copies and multiplies."""
        return measure_peaks(self.device)


def num_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
