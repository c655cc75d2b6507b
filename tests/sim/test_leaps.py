"""Stretches of steps carried out in one go leave the rows that single steps leave."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from llmsim.policies.core import specs
from llmsim.policies.core.config import EngineConfig, Policies
from llmsim.policies.core.engine import EngineCore
from llmsim.policies.core.estimator import StepCost, StepShape, StepTimeEstimator
from llmsim.policies.core.records import Status
from llmsim.sim.cost_model.analytic import AnalyticCostModel
from llmsim.sim.driver import SimDriver
from llmsim.tests.support.driven_core import VLLM
from llmsim.tests.support.toy_run import Rows, ToyCost, ToyStretchCost, assert_same, run_toys

SGLANG_ORDERS = ("fcfs", "lpm", "dfs_weight", "hrrn", "lof", "shortest_prefill_first")


def rows_of(
    seed: int,
    leaps: bool,
    cost_model: StepTimeEstimator | None = None,
    pace: int = 1,
    patience: tuple[int, ...] = (),
) -> tuple[Rows, int]:
    random = Random(seed)
    config = EngineConfig(
        num_blocks=random.choice((40, 60, 200)),
        block_size=random.choice((4, 16)) if seed % 3 else 8,
        depth=random.choice((1, 2)),
        max_num_seqs=random.choice((3, 64)),
        enable_prefix_caching=random.random() < 0.8,
    )
    core = EngineCore(config, Policies.of(VLLM))
    return run_toys(core, random, seed, leaps, cost_model, pace, patience)


def sglang_rows_of(
    seed: int, leaps: bool, patience: tuple[int, ...] = (), cost_model: StepTimeEstimator | None = None
) -> tuple[Rows, int]:
    random = Random(seed)
    page = random.choice((1, 1, 4, 16))
    mixed, chunked = random.random() < 0.3, random.random() < 0.8
    config = EngineConfig(
        num_blocks=random.choice((150, 200, 1000)) // page + 1,
        block_size=page,
        depth=random.choice((1, 2)),
        max_num_seqs=random.choice((3, 64)),
        enable_prefix_caching=random.random() < 0.8,
        enable_chunked_prefill=chunked,
        prefix_index="radix_tree",
        asks_generously=random.random() < 0.5,
    )
    by_priority = random.random() < 0.2
    order = {"name": "priority", "by": "entry"} if by_priority else {"name": random.choice(SGLANG_ORDERS)}
    batching = {
        "name": "prefill_first",
        "chunked_prefill_size": random.choice((16, 48, 1000)),
        "conservativeness": random.choice((0, 0.3, 1.0)),
        "mixed_chunk": mixed and chunked,
        "prefill_decode_interval": random.choice((0, 0, 2)),
        "preempts_by_priority": by_priority,
    }
    policies = {
        "batching": batching,
        "scheduling": order,
        "preemption": {"name": "fewest_outputs"},
        "chunk_size": {"name": "unlimited"},
        "eviction": {"name": random.choice(("lru", "lfu", "slru", "fifo"))},
    }
    return run_toys(EngineCore(config, Policies.of(policies)), random, seed, leaps, cost_model, 1, patience)


@pytest.mark.parametrize("first", range(0, 600, 100))
def test_leaping_equals_stepping(first: int) -> None:
    for seed in range(first, first + 100):
        assert_same(rows_of(seed, leaps=False), rows_of(seed, leaps=True), seed)


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_leaping_equals_stepping_on_a_radix_tree(first: int) -> None:
    num_preempted = 0
    for seed in range(first, first + 100):
        patience = (300, 1500, 100_000) if seed % 4 == 0 else ()
        stepped, leapt = (sglang_rows_of(seed, leaps, patience) for leaps in (False, True))
        assert_same(stepped, leapt, seed)
        num_preempted += sum(record.num_preemptions for record in leapt[0].requests)
    assert num_preempted > 0


def test_leaping_equals_stepping_where_clients_give_up() -> None:
    num_aborted = 0
    for seed in range(150):
        patience = (0, 40, 300, 700, 1500, 4000, 100_000)
        stepped, leapt = (rows_of(seed, leaps, patience=patience) for leaps in (False, True))
        assert_same(stepped, leapt, seed)
        num_aborted += sum(record.status is Status.ABORTED for record in leapt[0].requests)
    assert num_aborted > 500


def test_leaps_happen(monkeypatch: pytest.MonkeyPatch) -> None:
    leapt: list[int] = []
    run = SimDriver._leap

    def counted(self: SimDriver, now_ns: int) -> int:
        end = run(self, now_ns)
        leapt.append(end > now_ns)
        return end

    monkeypatch.setattr(SimDriver, "_leap", counted)
    for seed in range(20):
        rows_of(seed, leaps=True)
    assert sum(leapt) > 100


def test_a_request_that_was_preempted_and_resumed_has_all_its_tokens() -> None:
    records: list[Any] = [r for seed in range(100) for r in rows_of(seed, leaps=True)[0].requests]
    assert any(r.num_preemptions for r in records)
    assert all(r.output_tokens >= 1 and r.first_token_ns <= r.last_token_ns for r in records)


@pytest.mark.parametrize("rows", [rows_of, sglang_rows_of], ids=["blocks", "radix tree"])
def test_a_stretch_shares_as_many_tokens_as_its_steps(rows: Callable[..., tuple[Rows, int]]) -> None:
    """Those that are priced one by one, and those that are priced as vectors; and sharing happens."""
    different = 0
    for seed in range(60):
        stepped = rows(seed, leaps=False)
        assert_same(stepped, rows(seed, leaps=True, cost_model=ToyStretchCost()), seed)
        different += stepped[0].steps != rows(seed, leaps=True, cost_model=BlindToSharing())[0].steps
    assert different > 20


class BlindToSharing(ToyCost):
    """What is shared costs nothing."""

    def step_cost(self, shape: StepShape) -> StepCost:
        return super().step_cost(shape._replace(shared_tokens=0))


def test_leaping_equals_stepping_with_the_analytic_cost_model() -> None:
    """Here stretches are priced as vectors."""
    model = AnalyticCostModel(specs.model("tiny"), specs.gpu("h100-sxm"))
    for seed in range(30):
        stepped, leapt = (rows_of(seed, leaps, model, pace=100_000)[0] for leaps in (False, True))
        assert leapt.steps == stepped.steps, seed
        assert leapt.requests == stepped.requests, seed
