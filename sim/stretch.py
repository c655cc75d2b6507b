"""A stretch of steps in which nothing can be decided, carried out in one go.

While nobody waits, arrives or ends, each step is one more token for each member of the decode batch. What such steps
do to blocks, times and rows is done step by step here too, in the same order and by the same code; what is left out
is the machinery around a decision: the plan, the policies, the event queue. The rows are the same to the byte.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from collections.abc import Sequence as Items
from typing import NamedTuple

from ..policies.core.bookkeeping import Bookkeeper, Flight, Recorder, step_record
from ..policies.core.engine import EngineCore
from ..policies.core.estimator import StepCost
from ..policies.core.plan import Eviction, StepResult
from ..policies.core.records import StepKind, StepRecord
from .executor import SimExecutor

SHORTEST = 2
"""Steps below which a stretch is not worth its set-up."""


class Planned(NamedTuple):
    """A step of the stretch that is not committed yet."""

    record: StepRecord
    planned_ns: int
    end_ns: int
    evictions: Items[Eviction]


class StretchEnd(NamedTuple):
    """Where a stretch leaves the driver."""

    now_ns: int
    host_free_ns: int
    device_free_ns: int
    flights: list[Flight]
    """The last step, with asynchronous scheduling."""


class Stretch:
    """Carries stretches out for one driver."""

    def __init__(self, core: EngineCore, executor: SimExecutor, recorder: Recorder, books: Bookkeeper) -> None:
        self._core = core
        self._executor = executor
        self._on_step = recorder.on_step
        self._books = books

    def num_steps(self, flights: Iterable[Flight]) -> int:
        """Steps that can be carried out in one go if nobody arrives; 0 where something may have to be decided."""
        if any(flight.result.stopped for flight in flights):
            return 0
        steps = self._core.steady.num_steps()
        if steps < SHORTEST:
            return 0
        to_stop = self._executor.steps_to_stop(self._core.batch.planned)
        return steps if to_stop is None else min(steps, to_stop - 1)

    def run(
        self, now_ns: int, num_steps: int, horizon_ns: int | None, flights: Iterable[Flight], device_free_ns: int
    ) -> StretchEnd:
        """Plan and commit up to `num_steps` steps, the first at `now_ns`, none planned at `horizon_ns` or later."""
        core = self._core
        steady, batch, cache = core.steady, core.batch, core.kv_cache
        on_step, books = self._on_step, self._books
        size, running, decode = batch.size, len(core.running), StepKind.DECODE
        pipe = deque(Planned(step_record(f, 0, 0), f.plan.now_ns, f.end_ns, f.plan.evictions) for f in flights)
        cost, start, host_free = None, now_ns, now_ns
        costs = self._executor.costs_of_decodes(
            size, batch.context_tokens + size, batch.max_context() + 1, cache.num_shared_tokens
        )
        for _ in range(num_steps):
            if horizon_ns is not None and now_ns >= horizon_ns:
                break
            step = core.num_steps
            evictions = steady.plan(now_ns)
            context = batch.context_tokens
            cost = next(costs)
            device_ns, host_ns, compute_ns, memory_ns, extrapolated = cost
            host_free = now_ns + host_ns
            start = max(host_free, device_free_ns)
            device_free_ns = start + device_ns
            num_evicted = sum(eviction.num_blocks for eviction in evictions) if evictions else 0
            # fmt: off
            record = StepRecord(
                step, start, device_ns, decode, 0, size, context, running, 0, cache.pool.num_free,
                cache.index.num_evictable, context, 0, num_evicted, 0, 0, 0, 0, compute_ns, memory_ns, host_ns,
                extrapolated,
            )
            # fmt: on
            pipe.append(Planned(record, now_ns, device_free_ns, evictions))
            committed = pipe.popleft()
            now_ns = max(committed.end_ns, host_free)
            books.gaps(steady.commit(now_ns))
            if committed.evictions:
                books.evictions(committed.record.step, committed.planned_ns, committed.evictions)
            on_step(committed.record)
        costs.close()
        left = []
        if pipe and cost is not None:
            plan = steady.end(pipe[0].planned_ns, pipe[0].evictions)
            left = [Flight(plan, StepResult(cost[0]), StepCost(*cost), start, device_free_ns)]
        return StretchEnd(now_ns, host_free, device_free_ns, left)
