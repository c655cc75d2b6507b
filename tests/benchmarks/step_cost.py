"""What a step costs, in units of a bare SimPy timeout of the same minute; prints ratios, asserts nothing.

    python -m llmsim.tests.benchmarks.step_cost [--repeats N]

Sequences decode side by side, at block sizes that make few or many blocks change hands. For each
number of sequences the time of a step is fitted by a line against the blocks that change hands in it: its intercept
is the cost of a step, its slope that of a block. Times are CPU times, medians over repeats, bare timeouts and all
configurations taken in turn, between two steps of a run: admissions and ends are left out.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Iterable, Iterator
from statistics import median

import numpy as np
import simpy

from llmsim.policies.core import specs
from llmsim.policies.core.config import EngineConfig, Policies
from llmsim.policies.core.engine import EngineCore
from llmsim.policies.core.records import StepRecord
from llmsim.policies.core.request import Arrival, Output, Prompt, Request
from llmsim.sim.cost_model.analytic import AnalyticCostModel
from llmsim.sim.driver import SimDriver
from llmsim.sim.executor import SimExecutor
from llmsim.sim.recorder import Recorder

BATCHES = (16, 256, 1024)
BLOCK_SIZES = (8, 16, 32, 64, 128)
FIRST, LAST = 64, 64 + 1024
"""Steps between which time is taken: all decode, none ends; whole periods of every block size."""
POLICIES = {
    "batching": {"name": "unified"},
    "scheduling": {"name": "fcfs"},
    "preemption": {"name": "newest"},
    "chunk_size": {"name": "unlimited"},
    "eviction": {"name": "lru"},
}


class SideBySide:
    """All requests at once, each of them different."""

    def __init__(self, num_requests: int, output_tokens: int) -> None:
        self._num_requests = num_requests
        self._output = Output(output_tokens)

    def arrivals(self) -> Iterator[Arrival]:
        """The requests, at time 0."""
        for i in range(self._num_requests):
            request = Request(f"r{i}", 0, Prompt([(i, 0, 1 + i % 128)]), self._output.length, -i - 1)
            yield Arrival(0, request, self._output)

    def on_finish(self, request_id: str, now_ns: int) -> Iterable[Arrival]:
        """Nothing more."""
        return ()


def timeout_s(count: int = 100_000) -> float:
    """Seconds of a bare SimPy timeout."""
    env = simpy.Environment()

    def process() -> Iterator[simpy.Event]:
        for _ in range(count):
            yield env.timeout(1)

    env.process(process())
    begin = time.process_time()
    env.run()
    return (time.process_time() - begin) / count


class Stopwatch(Recorder):
    """A recorder that takes the time at two steps."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def on_step(self, record: StepRecord) -> None:
        """Note the time, if it is one of the two."""
        if record.step in (FIRST, LAST):
            self.seconds.append(time.process_time())
        super().on_step(record)


def step_s(batch: int, block_size: int, leaps: bool) -> float:
    """Seconds of a decode step, admissions and ends left out."""
    blocks = batch * (2 + (LAST + 256) // block_size)
    core = EngineCore(EngineConfig(blocks, block_size, depth=2, max_num_batched_tokens=1 << 20), Policies.of(POLICIES))
    model = AnalyticCostModel(specs.model("llama-3.1-8b"), specs.gpu("h100-sxm"))
    watch = Stopwatch()
    SimDriver(core, SimExecutor(model), SideBySide(batch, LAST + 64), watch, leaps=leaps).run()
    begin, end = watch.seconds
    return (end - begin) / (LAST - FIRST)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    gc.set_threshold(50_000, 20, 100)  # as the command line does
    cases = [(leaps, batch, size) for leaps in (False, True) for batch in BATCHES for size in BLOCK_SIZES]
    ratios: dict[tuple[bool, int, int], list[float]] = {case: [] for case in cases}
    for _ in range(repeats):
        for leaps, batch, size in cases:
            bare = timeout_s()
            ratios[leaps, batch, size].append(2 * step_s(batch, size, leaps) / (bare + timeout_s()))
    print(f"in bare SimPy timeouts (about {timeout_s() * 1e6:.2f} us here), medians of {repeats}")
    print(f"{'steps':>12} {'running':>8} {'a step':>8} {'a block':>8}   at blocks changing hands in a step: timeouts")
    for leaps in (False, True):
        for batch in BATCHES:
            hands = [batch / size for size in BLOCK_SIZES]
            costs = [median(ratios[leaps, batch, size]) for size in BLOCK_SIZES]
            slope, intercept = np.polyfit(hands, costs, 1)
            points = ", ".join(f"{h:g}: {c:.1f}" for h, c in zip(hands, costs, strict=True))
            name = "in stretches" if leaps else "one by one"
            print(f"{name:>12} {batch:>8} {intercept:>8.1f} {slope:>8.2f}   {points}")


if __name__ == "__main__":
    main()
