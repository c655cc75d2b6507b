"""Where nothing runs and nobody can be admitted, the run ends with an error instead of going on for ever."""

from __future__ import annotations

import pytest

from llmsim.policies.core.config import EngineConfig, Policies
from llmsim.policies.core.engine import EngineCore
from llmsim.policies.core.stall import StallError
from llmsim.sim.driver import SimDriver
from llmsim.sim.executor import SimExecutor
from llmsim.tests.support.driven_core import VLLM
from llmsim.tests.support.toy_run import Rivals, Rows, ToyCost

CHUNK = {"chunk_size": {"name": "threshold", "tokens": 8}}
SGLANG = {"batching": {"name": "prefill_first"}, "preemption": {"name": "fewest_outputs"}}


@pytest.mark.parametrize("depth", [1, 2])
def test_a_chunk_below_a_page_admits_nobody_and_that_ends_the_run(depth: int) -> None:
    config = EngineConfig(num_blocks=71, block_size=16, depth=depth, prefix_index="radix_tree")
    core = EngineCore(config, Policies.of(VLLM | SGLANG | CHUNK))
    with pytest.raises(StallError, match="2 requests wait, nothing runs, 70 blocks are free"):
        SimDriver(core, SimExecutor(ToyCost()), Rivals(), Rows()).run()
