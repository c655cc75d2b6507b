"""Stretches of steps carried out in one go leave the rows that single steps leave."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from llmsim.policies.core import specs
from llmsim.policies.core.config import EngineConfig, Policies
from llmsim.policies.core.engine import EngineCore
from llmsim.policies.core.estimator import StepCost, StepShape, StepTimeEstimator
from llmsim.policies.core.records import EventRecord, RequestRecord, Status, StepRecord
from llmsim.policies.core.request import Arrival, Output, Prompt, Request
from llmsim.sim.cost_model.analytic import AnalyticCostModel
from llmsim.sim.driver import Frontend, SimDriver
from llmsim.sim.executor import SimExecutor

VLLM = {
    "batching": {"name": "unified"},
    "scheduling": {"name": "fcfs"},
    "preemption": {"name": "newest"},
    "chunk_size": {"name": "unlimited"},
    "eviction": {"name": "lru"},
}


@dataclass
class Rows:
    """A recorder that keeps everything."""

    steps: list[StepRecord] = field(default_factory=list)
    gaps: list[tuple[int, int]] = field(default_factory=list)
    requests: list[RequestRecord] = field(default_factory=list)
    events: list[EventRecord] = field(default_factory=list)

    def on_step(self, record: StepRecord) -> None:
        self.steps.append(record)

    def on_gap(self, gap_ns: int, count: int) -> None:
        self.gaps.append((gap_ns, count))

    def on_request(self, record: RequestRecord) -> None:
        self.requests.append(record)

    def on_event(self, record: EventRecord) -> None:
        self.events.append(record)


class ToyCost:
    """Round numbers, so that arrivals fall on step boundaries now and then; host-bound for small batches."""

    def step_cost(self, shape: StepShape) -> StepCost:
        tokens = shape.num_decodes + sum(q for q, _ in shape.prefill_chunks)
        device = 10 * tokens + shape.decode_context_tokens // 8 + shape.max_decode_context % 3
        return StepCost(device, 25 + shape.num_decodes, tokens, shape.decode_context_tokens)


class ToyTraffic:
    """Random requests, some of which stop early, some of which set off another a while after they end.

    With `patience`, clients give up after one of these times, and some send another then.
    """

    def __init__(self, seed: int, pace: int, patience: tuple[int, ...] = ()) -> None:
        self._random = Random(seed)
        self._pace = pace
        self._patience = patience
        self._count = 0

    def _make(self, time_ns: int) -> Arrival:
        random, self._count = self._random, self._count + 1
        spans = [(random.randrange(3), 0, random.randrange(1, 40)), (1000 + self._count, 0, random.randrange(1, 30))]
        length = random.randrange(1, 60)
        limit = length + random.choice((0, 0, 7))
        request = Request(f"r{self._count}", time_ns, Prompt(spans), limit, -self._count)
        patience = random.choice(self._patience) if self._patience else None
        return Arrival(time_ns, request, Output(length), patience_ns=patience)

    def arrivals(self) -> Iterator[Arrival]:
        time_ns = 0
        for _ in range(25):
            time_ns += self._pace * self._random.choice((0, 5, 100, 1000, 5000))
            yield self._make(time_ns)

    def on_finish(self, request_id: str, now_ns: int) -> Iterable[Arrival]:
        if self._count < 40 and self._random.random() < 0.4:
            return [self._make(now_ns + self._random.choice((0, 30, 2000)))]
        return []

    def on_give_up(self, request_id: str, now_ns: int) -> Iterable[Arrival]:
        return self.on_finish(request_id, now_ns)


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
    warmup = random.choice((0, 0, 4000))
    rows, core = Rows(), EngineCore(config, Policies.of(VLLM))
    driver = SimDriver(
        core,
        SimExecutor(cost_model or ToyCost()),
        ToyTraffic(seed, pace, patience),
        rows,
        frontend=Frontend(ingress_ns=random.choice((0, 7)), egress_ns=3),
        warmup_ns=warmup,
        leaps=leaps,
    )
    end = driver.run()
    core.check_integrity()
    assert core.num_free_blocks == config.num_blocks - 1
    return rows, end


@pytest.mark.parametrize("first", range(0, 600, 100))
def test_leaping_equals_stepping(first: int) -> None:
    for seed in range(first, first + 100):
        stepped, stepped_end = rows_of(seed, leaps=False)
        leapt, leapt_end = rows_of(seed, leaps=True)
        assert leapt.steps == stepped.steps, seed
        assert sorted(leapt.gaps) == sorted(stepped.gaps), seed
        assert leapt.requests == stepped.requests, seed
        assert leapt.events == stepped.events, seed
        assert leapt_end == stepped_end, seed


def test_leaping_equals_stepping_where_clients_give_up() -> None:
    num_aborted = 0
    for seed in range(150):
        patience = (0, 40, 300, 700, 1500, 4000, 100_000)
        (stepped, stepped_end), (leapt, leapt_end) = (
            rows_of(seed, leaps, patience=patience) for leaps in (False, True)
        )
        assert leapt.steps == stepped.steps, seed
        assert sorted(leapt.gaps) == sorted(stepped.gaps), seed
        assert leapt.requests == stepped.requests, seed
        assert leapt.events == stepped.events, seed
        assert leapt_end == stepped_end, seed
        num_aborted += sum(record.status is Status.ABORTED for record in leapt.requests)
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


def test_leaping_equals_stepping_with_the_analytic_cost_model() -> None:
    """Here stretches are priced as vectors."""
    model = AnalyticCostModel(specs.model("tiny"), specs.gpu("h100-sxm"))
    for seed in range(30):
        stepped, leapt = (rows_of(seed, leaps, model, pace=100_000)[0] for leaps in (False, True))
        assert leapt.steps == stepped.steps, seed
        assert leapt.requests == stepped.requests, seed
