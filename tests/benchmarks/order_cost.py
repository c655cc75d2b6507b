"""What ordering the queue costs, in units of a bare SimPy timeout of the same minute; prints ratios, asserts nothing.

    python -m llmsim.tests.benchmarks.order_cost [--repeats N]

A radix tree holds the contexts of 20 tenants with 8 repositories each; requests for them wait, others run. One call of
`reorder` is timed for each order that looks prefixes up, with 10, 100 and 1,000 waiting and 16 and 256 running: it may
grow with the queue, never with what runs. Times are CPU times, medians over repeats.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from random import Random
from statistics import median

from llmsim.policies.core.config import EngineConfig, Policies
from llmsim.policies.core.engine import EngineCore
from llmsim.policies.core.plan import StepResult
from llmsim.policies.core.request import Prompt, Request
from llmsim.tests.benchmarks.step_cost import timeout_s

WAITING = (10, 100, 1000)
RUNNING = (16, 256)
ORDERS: tuple[dict[str, object], ...] = (
    {"name": "fcfs"},
    {"name": "lpm", "most": 1 << 20},
    {"name": "hrrn", "most": 1 << 20},
    {"name": "dfs_weight"},
    {"name": "prefix_aware", "most": 1 << 20},
)


def core_with(order: dict[str, object], num_running: int, num_waiting: int) -> EngineCore:
    """A core whose slots are taken, with a tree of 160 contexts and a queue of requests for them."""
    config = EngineConfig(40_000_000, 1, max_num_seqs=num_running, prefix_index="radix_tree")
    policies = {
        "batching": {"name": "prefill_first", "chunked_prefill_size": 1 << 20, "max_prefill_tokens": 1 << 30},
        "scheduling": order,
        "preemption": {"name": "fewest_outputs"},
        "chunk_size": {"name": "unlimited"},
        "eviction": {"name": "lru"},
    }
    core, random = EngineCore(config, Policies.of(policies)), Random(0)
    for number in range(160):
        add(core, number, number, 1)
    step_until(core, lambda: not core.sequences)
    for number in range(160, 160 + num_running):
        add(core, number, random.randrange(160), 100_000)
    step_until(core, lambda: not core.waiting)
    for number in range(1000, 1000 + num_waiting):
        add(core, number, random.randrange(160), 100)
    return core


def add(core: EngineCore, number: int, context: int, max_tokens: int) -> None:
    """Give the core a request: a tenant's tools, a repository, a question of its own."""
    spans = [(context % 20, 0, 2000), (1000 + context, 0, 4000), (10_000 + number, 0, 200)]
    core.add_request(Request(f"r{number}", number, Prompt(spans), max_tokens, -number - 1), number)


def step_until(core: EngineCore, is_done: Callable[[], bool]) -> None:
    """Carry steps out."""
    while not is_done():
        plan = core.plan_step(core.now_ns + 1)
        assert plan is not None
        core.commit_step(plan, StepResult(0), core.now_ns)


def order_s(order: dict[str, object], num_running: int, num_waiting: int) -> float:
    """Seconds of one call of `reorder`."""
    core = core_with(order, num_running, num_waiting)
    count = max(20, 2000 // num_waiting)
    begin = time.process_time()
    for _ in range(count):
        core.policies.scheduling.reorder(core.waiting, core)
    return (time.process_time() - begin) / count


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    gc.set_threshold(50_000, 20, 100)  # as the command line does
    print(f"in bare SimPy timeouts (about {timeout_s() * 1e6:.2f} us here), medians of {repeats}, for a call")
    print(f"{'order':>14} {'running':>8}" + "".join(f" {f'{n:,} waiting':>14}" for n in WAITING))
    for order in ORDERS:
        for num_running in RUNNING:
            costs = []
            for num_waiting in WAITING:
                times = [order_s(order, num_running, num_waiting) / timeout_s() for _ in range(repeats)]
                costs.append(median(times))
            print(f"{order['name']:>14} {num_running:>8}" + "".join(f" {cost:>14,.1f}" for cost in costs))


if __name__ == "__main__":
    main()
