"""A device and a model set up for timing: what the study asks, step by step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from ...kernels.choosing import Backend, kernels_for
from ...policies.core.model_spec import ModelSpec
from ..devices import DTYPES, DeviceError, find_device
from ..graphs import buckets, can_capture
from ..model.loading import config_of, load_model
from .bench import StepBench, block_bytes, blocks_of
from .facts import clock, device_name, software
from .grids import Grid, steps_of
from .host_costs import HostCost, host_costs
from .memory import SHARE, is_out_of_memory
from .peaks import Peaks, measure_peaks
from .steps import BLOCK_SIZE, TimedStep
from .visit import Visit, visit

LARGEST_BATCH = 1 << 13
"""More than any engine runs at once."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What was measured on what, as it stands in a profile."""

    device: str
    software: str
    memory_bytes: int
    graph_sizes: tuple[int, ...]
    """Batch sizes with a CUDA graph, as far as any engine has them; empty on a CPU."""


class ProfileSession:
    """One model on one device. The model's weights are random: no kernel's time depends on them."""

    def __init__(
        self,
        source: Path | ModelSpec,
        *,
        device: str,
        dtype: str,
        threads: int,
        backend: Backend,
        warn: Callable[[str], None],
    ) -> None:
        """`device` and `dtype` as `devices` names them.

        Raises DeviceError, KernelsUnavailable, and ModelError where the engine does not compute the model.
        """
        found = find_device(device)
        torch.set_num_threads(threads)
        self.device, self.dtype = found.device, DTYPES[dtype]
        self.memory_bytes = found.total_bytes
        if found.is_gpu:
            torch.cuda.set_device(found.device)  # where Triton launches, and events are recorded
        head_dim = config_of(source).spec.head_dim
        self.kernels = kernels_for(self.device, backend, warn, head_dim=head_dim, block_size=BLOCK_SIZE)
        try:
            self.model = load_model(
                source, device=self.device, dtype=self.dtype, seed=0, kernels=self.kernels, random=True
            )
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise DeviceError(f"{found.name} has not the memory for the weights") from None
        self._bench: StepBench | None = None

    @property
    def spec(self) -> ModelSpec:
        """The model's shapes."""
        return self.model.config.spec

    def facts(self) -> Facts:
        """What the device says of itself."""
        sizes = tuple(buckets(LARGEST_BATCH)) if can_capture(self.device, self.kernels) else ()
        return Facts(device_name(self.device), software(), self.memory_bytes, sizes)

    def clock(self) -> str | None:
        """How fast it runs now: to be asked while it is busy, or just after."""
        return clock(self.device)

    def steps(self, grid: Grid, seed: int) -> list[TimedStep]:
        """The grid's steps that the model has positions for."""
        return steps_of(grid, self.spec.max_position_embeddings, seed)

    def set_up(self, steps: list[TimedStep]) -> list[TimedStep]:
        """Make room for the steps; those that there is no memory for are left out and returned."""
        room = int(SHARE * find_device(str(self.device)).free_bytes) // block_bytes(self.model)
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
            raise DeviceError(f"{device_name(self.device)} has no memory for KV beside the weights")
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
