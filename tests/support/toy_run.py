"""Small runs in virtual time whose rows are kept: a toy cost model and toy traffic around a core under test."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from random import Random

import numpy as np

from llmsim.policies.core.engine import EngineCore
from llmsim.policies.core.estimator import StepCost, StepShape, StepTimeEstimator
from llmsim.policies.core.frontend import Frontend
from llmsim.policies.core.records import EventRecord, RequestRecord, StepRecord
from llmsim.policies.core.request import Arrival, Output, Prompt, Request
from llmsim.sim.cost_model.analytic import StretchCost
from llmsim.sim.cost_model.host_link import HostLink
from llmsim.sim.driver import SimDriver
from llmsim.sim.executor import SimExecutor


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
        device += 7 * shape.shared_tokens
        return StepCost(device, 25 + shape.num_decodes, tokens, shape.decode_context_tokens)


class ToyStretchCost(ToyCost):
    """The same, and stretches of steps at once."""

    def decode_stretch(
        self, num_decodes: int, context_tokens: int, max_context: int, num_steps: int, shared_tokens: int = 0
    ) -> StretchCost:
        shapes = (
            StepShape(
                (), num_decodes, context_tokens + i * num_decodes, max_context + i, num_decodes, 0, 0, shared_tokens
            )
            for i in range(num_steps)
        )
        rows = np.array([self.step_cost(shape)[:4] for shape in shapes], np.int64).reshape(num_steps, 4)
        return StretchCost(*rows.T)


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


class Rivals:
    """One that is served alone, and two that come meanwhile: of both a step would take 8 tokens, less than a page."""

    def arrivals(self) -> Iterator[Arrival]:
        for name, time_ns in (("a", 0), ("b", 1), ("c", 2)):
            yield Arrival(time_ns, Request(name, time_ns, Prompt([(time_ns, 0, 40)]), 1, 9000 + time_ns), Output(1))

    def on_finish(self, request_id: str, now_ns: int) -> Iterable[Arrival]:
        return []

    def on_give_up(self, request_id: str, now_ns: int) -> Iterable[Arrival]:
        return []


def run_toys(
    core: EngineCore,
    random: Random,
    seed: int,
    leaps: bool,
    cost_model: StepTimeEstimator | None = None,
    pace: int = 1,
    patience: tuple[int, ...] = (),
    host_link: HostLink | None = None,
) -> tuple[Rows, int]:
    """The rows of a run of the seed's traffic and its end; nothing is left behind in the core."""
    warmup, rows = random.choice((0, 0, 4000)), Rows()
    driver = SimDriver(
        core,
        SimExecutor(cost_model or ToyCost(), host_link),
        ToyTraffic(seed, pace, patience),
        rows,
        frontend=Frontend(ingress_ns=random.choice((0, 7)), egress_ns=3),
        warmup_ns=warmup,
        leaps=leaps,
    )
    end = driver.run()
    core.check_integrity()
    assert core.num_free_blocks == core.config.num_blocks - 1
    return rows, end


def assert_same(a: tuple[Rows, int], b: tuple[Rows, int], seed: int) -> None:
    """Both runs left the same."""
    assert a[0].steps == b[0].steps, seed
    assert sorted(a[0].gaps) == sorted(b[0].gaps), seed
    assert a[0].requests == b[0].requests, seed
    assert a[0].events == b[0].events, seed
    assert a[1] == b[1], seed
