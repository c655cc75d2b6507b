"""What the host spends on a step: planning, inputs, and learning that it is done; measured beside a tiny model."""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

import numpy as np
import torch

from ...kernels.contract import Kernels
from ...policies.core.config import EngineConfig, Policies
from ...policies.core.engine import EngineCore
from ...policies.core.model_spec import ModelSpec
from ...policies.core.request import Output, Prompt, Request
from ..executor import RealExecutor
from ..model.loading import load_model
from ..model.transformer import Transformer

POLICIES = {
    "batching": {"name": "unified"},
    "scheduling": {"name": "fcfs"},
    "preemption": {"name": "newest"},
    "chunk_size": {"name": "unlimited"},
    "eviction": {"name": "lru"},
}
"""vLLM's, whose core costs what is measured."""
TINY = ModelSpec("host-costs", 1, 64, 64, 1, 1, 64, 256, 4096)
PROMPT = 32
STEPS = 64
WARM_UP = 8


class HostCost(NamedTuple):
    """Of a step of so many decodes, medians in microseconds but for `sync_us`."""

    batch: int
    core_us: float
    """Planning and committing."""
    launch_us: float
    """Inputs, and sending the work on its way."""
    sync_us: float
    """From the end of the step on the device until the host knows its tokens: the first quartile, since a busy machine
    wakes a thread late."""

    @property
    def total_us(self) -> float:
        """All three."""
        return self.core_us + self.launch_us + self.sync_us


def host_costs(batches: Sequence[int], device: torch.device, dtype: torch.dtype, kernels: Kernels) -> list[HostCost]:
    """A loop of one step at a time, so that nothing overlaps but what the device does while it is launched."""
    model = load_model(TINY, device=device, dtype=dtype, seed=0, kernels=kernels)
    return [_measure(batch, _Loop(batch, model)) for batch in batches]


class _Loop:
    """An engine whose requests decode for as long as is measured."""

    def __init__(self, batch: int, model: Transformer) -> None:
        config = EngineConfig(
            num_blocks=batch * 8 + 1, max_num_seqs=batch, max_num_batched_tokens=8192, max_model_len=128
        )
        self.core = EngineCore(config, Policies.of(POLICIES), tells_grants=True)
        self.executor = RealExecutor(model, config)
        for i in range(batch):
            request = Request(f"r{i}", 0, Prompt([(i, 0, PROMPT)]), 128 - PROMPT, -1 - i)
            self.executor.expect(request, Output(128 - PROMPT))
            self.core.add_request(request, 0)

    def step(self) -> tuple[int, HostCost]:
        """Decodes in the step, and what it cost the host."""
        begin = time.perf_counter_ns()
        plan = self.core.plan_step(begin)
        planned = time.perf_counter_ns()
        assert plan is not None
        ticket = self.executor.launch(plan)
        launched = time.perf_counter_ns()
        done = ticket.wait()
        waited = time.perf_counter_ns()
        self.core.commit_step(plan, done.result, waited)
        core_ns = planned - begin + time.perf_counter_ns() - waited
        sync_ns = max(waited - launched - done.cost.device_ns, 0)
        return plan.num_decodes, HostCost(plan.num_decodes, core_ns / 1e3, (launched - planned) / 1e3, sync_ns / 1e3)


def _measure(batch: int, loop: _Loop) -> HostCost:
    costs = []
    for _ in range(STEPS):
        num_decodes, cost = loop.step()
        if num_decodes == batch:
            costs.append(cost)
    loop.executor.close()
    _, core, launch, sync = zip(*costs[WARM_UP:], strict=True)
    return HostCost(batch, median(core), median(launch), float(np.percentile(sync, 25)))
