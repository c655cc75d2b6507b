"""SGLang aborts the last request that decodes where memory is short; the run goes on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from llmsim.policies.core.config import EngineConfig, Policies
from llmsim.policies.core.engine import EngineCore
from llmsim.policies.core.records import Status
from llmsim.policies.core.request import Arrival, Output, Prompt, Request
from llmsim.sim.driver import SimDriver
from llmsim.sim.executor import SimExecutor
from llmsim.tests.support.toy_run import Rows, ToyCost


class Starving:
    """One that talks, and one whose prompt is computed beside it until memory is used up."""

    def __init__(self, reader_ns: int) -> None:
        self._reader_ns = reader_ns

    def arrivals(self) -> Iterator[Arrival]:
        for name, time_ns, prompt, output in (("talker", 0, 4, 60), ("reader", self._reader_ns, 40, 1)):
            request = Request(name, time_ns, Prompt([(time_ns, 0, prompt)]), output, 10_000 + time_ns)
            yield Arrival(time_ns, request, Output(output))

    def on_finish(self, request_id: str, now_ns: int) -> Iterable[Arrival]:
        return []

    def on_give_up(self, request_id: str, now_ns: int) -> Iterable[Arrival]:
        return []


@pytest.mark.parametrize("leaps", [False, True])
@pytest.mark.parametrize(("depth", "reader_ns"), [(1, 900), (2, 300)])
def test_the_run_goes_on_when_the_last_that_decodes_was_aborted(depth: int, reader_ns: int, leaps: bool) -> None:
    config = EngineConfig(num_blocks=71, block_size=1, depth=depth, prefix_index="radix_tree")
    batching = {"chunked_prefill_size": 4, "conservativeness": 0.0, "prefill_decode_interval": 8}
    policies = {
        "batching": {"name": "prefill_first", **batching},
        "scheduling": {"name": "fcfs"},
        "preemption": {"name": "fewest_outputs"},
        "chunk_size": {"name": "unlimited"},
        "eviction": {"name": "lru"},
    }
    core, rows = EngineCore(config, Policies.of(policies)), Rows()
    SimDriver(core, SimExecutor(ToyCost()), Starving(reader_ns), rows, leaps=leaps).run()
    core.check_integrity()
    assert core.num_free_blocks == 70
    ends = {record.request_id: record.status for record in rows.requests}
    assert ends == {"talker": Status.ABORTED, "reader": Status.FINISHED}
