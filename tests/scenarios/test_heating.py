"""What is served before a run on the real engine, so that nothing is done for the first time in it."""

from __future__ import annotations

from typing import Any

import pytest

from llmsim.policies.core.plan import StepPlan
from llmsim.scenarios.heating import chunks_up_to, heat_up
from llmsim.tests.support.driven_core import VLLM, core_of
from llmsim.tests.support.fake_executor import FakeClock, FakeExecutor
from llmsim.tests.support.toy_run import ToyCost

SGLANG = VLLM | {"batching": {"name": "prefill_first"}, "preemption": {"name": "fewest_outputs"}}


class Noting(FakeExecutor):
    """Notes the chunks of each step."""

    def __init__(self) -> None:
        super().__init__(ToyCost(), FakeClock())
        self.chunks: list[list[int]] = []

    def launch(self, plan: StepPlan) -> Any:
        self.chunks.append([row.num_tokens for row in plan.rows])
        return super().launch(plan)


@pytest.mark.parametrize(
    ("specs", "limits", "longest"),
    [
        (VLLM, {"num_blocks": 1000}, 512),
        (VLLM, {"num_blocks": 1000, "max_model_len": 300}, 299),
        (VLLM, {"num_blocks": 21}, 160),
        (SGLANG, {"num_blocks": 801, "block_size": 1, "prefix_index": "radix_tree"}, 400),
    ],
)
def test_where_kernels_compile_chunks_of_all_sizes_are_served(
    specs: dict[str, dict[str, Any]], limits: dict[str, Any], longest: int
) -> None:
    executor = Noting()
    core = core_of(specs, max_num_batched_tokens=512, depth=2, **limits)
    heat_up(core, executor, compiles=True)
    alone = [chunks[0] for chunks in executor.chunks if len(chunks) == 1 and chunks[0] > 1]
    assert alone == chunks_up_to(longest)
    assert (alone[:6], alone[-1]) == ([2, 4, 8, 16, 32, 64], longest)
    assert not core.sequences


def test_where_nothing_compiles_a_few_short_requests_will_do() -> None:
    executor = Noting()
    heat_up(core_of(VLLM, num_blocks=1000, depth=2), executor)
    assert sum(sum(chunks) for chunks in executor.chunks) < 100
