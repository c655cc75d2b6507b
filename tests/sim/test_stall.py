"""Where nothing runs and nobody can be admitted, the run ends with an error instead of going on for ever."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from llmsim.policies.core.config import EngineConfig, Policies
from llmsim.policies.core.engine import EngineCore
from llmsim.policies.core.request import Arrival, Output, Prompt, Request
from llmsim.policies.core.stall import StallError
from llmsim.sim.driver import SimDriver
from llmsim.sim.executor import SimExecutor
from llmsim.tests.support.driven_core import VLLM
from llmsim.tests.support.toy_run import Rows, ToyCost

CHUNK = {"chunk_size": {"name": "threshold", "tokens": 8}}
SGLANG = {"batching": {"name": "prefill_first"}, "preemption": {"name": "fewest_outputs"}}


class Rivals:
    """One that is served alone, and two that come meanwhile: of both a step would take 8 tokens, less than a page."""

    def arrivals(self) -> Iterator[Arrival]:
        for name, time_ns in (("a", 0), ("b", 1), ("c", 2)):
            yield Arrival(time_ns, Request(name, time_ns, Prompt([(time_ns, 0, 40)]), 1, 9000 + time_ns), Output(1))

    def on_finish(self, request_id: str, now_ns: int) -> Iterable[Arrival]:
        return []

    def on_give_up(self, request_id: str, now_ns: int) -> Iterable[Arrival]:
        return []


@pytest.mark.parametrize("depth", [1, 2])
def test_a_chunk_below_a_page_admits_nobody_and_that_ends_the_run(depth: int) -> None:
    config = EngineConfig(num_blocks=71, block_size=16, depth=depth, prefix_index="radix_tree")
    core = EngineCore(config, Policies.of(VLLM | SGLANG | CHUNK))
    with pytest.raises(StallError, match="2 requests wait, nothing runs, 70 blocks are free"):
        SimDriver(core, SimExecutor(ToyCost()), Rivals(), Rows()).run()
