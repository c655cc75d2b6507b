"""What the host spends on a step of the real engine: core and inputs, without a model.

    python -m llmsim.tests.benchmarks.host_cost [--batch 256] [--steps 2000] [--profile]

Prints, for steps in which nothing changes but blocks that fill, the median time of the core (plan and commit), of the
executor's host part (mirror, inputs) and of its device part without the model (tables, positions, forced tokens).
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import time
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from llmsim.kernels.torch_backend import TorchKernels
from llmsim.policies.core.config import EngineConfig, Policies
from llmsim.policies.core.engine import EngineCore
from llmsim.policies.core.request import Output, Prompt, Request
from llmsim.real_engine.executor import RealExecutor
from llmsim.real_engine.model.transformer import Transformer
from llmsim.real_engine.streams import Finished, Work
from llmsim.tests.support.driven_core import VLLM


class NoModel:
    """A model without layers: hidden states and logits are zeros."""

    device, dtype, kernels = torch.device("cpu"), torch.float32, TorchKernels()
    config = SimpleNamespace(spec=SimpleNamespace(vocab_size=32000, num_layers=1, num_kv_heads=1, head_dim=2))

    def forward(self, tokens: Tensor, *_: Any) -> Tensor:
        """[T, 1]."""
        return torch.zeros(len(tokens), 1)

    def logits(self, hidden: Tensor) -> Tensor:
        """[S, 2]."""
        return torch.zeros(len(hidden), 2)


class TimedStream:
    """Does work at once and notes how long it took."""

    def __init__(self) -> None:
        self.took_ns: list[int] = []

    def send(self, work: Work) -> TimedStream:
        """Do it."""
        start = time.perf_counter_ns()
        with torch.inference_mode():
            self._values = work().numpy()
        self.took_ns.append(time.perf_counter_ns() - start)
        return self

    def wait(self) -> Finished:
        """What came of it."""
        return Finished(self._values, self.took_ns[-1])

    def close(self) -> None:
        """Nothing is under way."""


def measure(batch: int, steps: int) -> tuple[float, float, float]:
    """Medians in ns: core, host part, device part."""
    config = EngineConfig(num_blocks=batch * 400, max_num_seqs=batch, max_num_batched_tokens=8192, max_model_len=6400)
    core, stream = EngineCore(config, Policies.of(VLLM), tells_grants=True), TimedStream()
    executor = RealExecutor(cast(Transformer, NoModel()), config, stream=stream)
    for i in range(batch):
        request = Request(f"r{i}", 0, Prompt([(i, 0, 100 + i % 16)]), 6000, -1 - i)
        executor.expect(request, Output(6000))
        core.add_request(request, 0)
    core_ns, host_ns = [], []
    for step in range(steps):
        begin = time.perf_counter_ns()
        plan = core.plan_step(step)
        planned = time.perf_counter_ns()
        assert plan is not None
        ticket = executor.launch(plan)
        done = ticket.wait()
        waited = time.perf_counter_ns()
        core.commit_step(plan, done.result, step)
        if plan.num_decodes == batch:
            core_ns.append(planned - begin + time.perf_counter_ns() - waited)
            host_ns.append(waited - planned - stream.took_ns[-1])
    return float(np.median(core_ns)), float(np.median(host_ns)), float(np.median(stream.took_ns[-len(core_ns) :]))


def main() -> None:
    """Read the options, print one line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    profiler = cProfile.Profile()
    if options.profile:
        profiler.enable()
    core_ns, host_ns, device_ns = measure(options.batch, options.steps)
    if options.profile:
        profiler.disable()
        pstats.Stats(profiler).sort_stats("tottime").print_stats(25)
    total = core_ns + host_ns + device_ns
    print(f"batch {options.batch}: core {core_ns / 1e3:.0f} us, inputs on the host {host_ns / 1e3:.0f} us, ", end="")
    print(f"state on the device {device_ns / 1e3:.0f} us, together {total / 1e6:.3f} ms")


if __name__ == "__main__":
    main()
