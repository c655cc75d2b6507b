"""Plays the requests of a measured run through the simulated engine, at the times at which they really came."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...calibrate.comparison import RunTimes
from ...calibrate.runs.measured_run import BLOCK_TOKENS, MeasuredRequest, MeasuredRun
from ...policies.core.estimator import StepCost, StepTimeEstimator
from ...policies.core.plan import StepPlan, StepResult
from ...policies.core.radix_cache import OutOfMemory
from ...policies.core.records import EventKind, EventRecord, RequestRecord, StepRecord
from ...policies.core.request import Arrival, Prompt
from ...policies.core.stall import StallError
from ...sim.columns import NS_PER_S, Floats
from ...sim.cost_model.host_link import HostLink
from ...sim.cost_model.shares import TimeShares
from ...sim.driver import SimDriver
from ...sim.executor import SimExecutor
from ...sim.gaps import GapPool, Gaps
from ..assembly import Assembly
from ..content_ids import unique_prompt
from ..errors import ScenarioError
from ..policy_watch import Watchdog, blamed
from ..warm_cache import warm_up
from ..workloads.request_making import make_arrival


class MeasuredTraffic:
    """The requests of a measured run as a workload; request i is the i-th to arrive.

    A prompt whose blocks are not named shares nothing with others.
    """

    def __init__(self, run: MeasuredRun, *, intended: bool = False) -> None:
        self._requests = run.requests
        self._intended = intended

    def arrivals(self) -> Iterator[Arrival]:
        """Each at its measured time, or when it was meant to come."""
        times_ns = [self._time_ns(request) for request in self._requests]
        for index in np.argsort(times_ns, kind="stable").tolist():
            request = self._requests[index]
            yield make_arrival(index, times_ns[index], _prompt(request, index), request.output_tokens)

    def on_finish(self, request_id: str, now_ns: int) -> Iterable[Arrival]:
        """Nothing more."""
        return ()

    def _time_ns(self, request: MeasuredRequest) -> int:
        time_s = request.arrival_s
        if self._intended:
            assert request.intended_s is not None, f"{request.id} has no intended time"
            time_s = request.intended_s
        return round(time_s * NS_PER_S)


def _prompt(request: MeasuredRequest, index: int) -> Prompt:
    if not request.block_ids:
        return Prompt([(unique_prompt(index), 0, request.prompt_tokens)])
    spans = [(block, 0, BLOCK_TOKENS) for block in request.block_ids]
    rest = request.prompt_tokens - BLOCK_TOKENS * (len(spans) - 1)
    return Prompt([*spans[:-1], (request.block_ids[-1], 0, rest)])


@dataclass(slots=True)
class ReplayRecords:
    """What the replay of a run leaves behind; the driver's recorder."""

    requests: dict[int, RequestRecord] = field(default_factory=dict)
    steps: list[StepRecord] = field(default_factory=list)
    gap_pool: GapPool = field(default_factory=GapPool)
    shares: TimeShares = field(default_factory=TimeShares)
    """What the device time rests on."""
    num_preemptions: int = 0

    def on_step(self, record: StepRecord) -> None:
        """A step was committed."""
        self.steps.append(record)

    def on_gap(self, gap_ns: int, count: int) -> None:
        """So many tokens came so long after the chunk before."""
        self.gap_pool.add(gap_ns, count)

    def on_request(self, record: RequestRecord) -> None:
        """A request ended."""
        self.requests[int(record.request_id.removeprefix("r"))] = record

    def on_event(self, record: EventRecord) -> None:
        """Someone was preempted, evicted or refused."""
        self.num_preemptions += record.kind is EventKind.PREEMPT

    def times(self) -> RunTimes:
        """The times of every request, in order of arrival."""
        records = [self.requests[index] for index in sorted(self.requests)]
        names = ("sent_ns", "first_scheduled_ns", "first_token_ns", "last_token_ns")
        columns = [_seconds([getattr(record, name) for record in records]) for name in names]
        return RunTimes._make([*columns, np.array([record.output_tokens for record in records], dtype=np.float64)])

    def gaps(self) -> Gaps:
        """The pooled gaps of the requests that were sent after the warm-up."""
        return self.gap_pool.merged()


class ColdExecutor(SimExecutor):
    """Predicts a run whose first steps take the host so long: it compiles and loads what later steps find ready."""

    def __init__(self, cost_model: StepTimeEstimator, host_link: HostLink | None, host_s: Sequence[float]) -> None:
        super().__init__(cost_model, host_link)
        self._host_ns = [round(seconds * NS_PER_S) for seconds in host_s]

    def execute(self, plan: StepPlan) -> tuple[StepResult, StepCost]:
        """Predict a step; its host time is never less than the cost model's."""
        result, cost = super().execute(plan)
        if plan.step < len(self._host_ns):
            cost = cost._replace(host_ns=max(cost.host_ns, self._host_ns[plan.step]))
        return result, cost


def _seconds(times_ns: list[int | None]) -> Floats:
    return np.array(times_ns, dtype=np.float64) / NS_PER_S


def replay(
    assembly: Assembly,
    run: MeasuredRun,
    *,
    cost_model: StepTimeEstimator | None = None,
    warmup_s: float = 0.0,
    intended: bool = False,
    cold_start_s: Sequence[float] = (),
) -> ReplayRecords:
    """Simulate the run's requests at their measured (or intended) times; raises ScenarioError where that fails.

    `cost_model` is the scenario's where left out. Gaps of requests that arrive before `warmup_s` are not pooled.
    `cold_start_s` is what the first steps take the host.
    """
    cost_model, records = cost_model or assembly.cost_model(), ReplayRecords()
    core = assembly.core(cost_model)
    traffic = MeasuredTraffic(run, intended=intended)
    warmup_ns = round(warmup_s * NS_PER_S)
    executor = ColdExecutor(cost_model, assembly.host_link, cold_start_s)
    records.shares = executor.shares
    driver = SimDriver(
        core,
        executor,
        traffic,
        records,
        frontend=assembly.frontend(),
        warmup_ns=warmup_ns,
        leaps=not cold_start_s,  # every step must be asked for
    )
    try:
        if assembly.scenario.run.cache == "warm":
            warm_up(core, assembly, traffic, cost_model)
        with Watchdog(core):
            driver.run()
    except (StallError, OutOfMemory) as error:
        raise ScenarioError(assembly.scenario.source, "engine", f"the engine stalled at {error}") from None
    except BaseException as error:
        if wrong := blamed(error, core, assembly.scenario.source):
            raise wrong from (error.__cause__ or error)
        raise
    _check_served(run, records)
    return records


def _check_served(run: MeasuredRun, records: ReplayRecords) -> None:
    """The real engine served them all, so the simulated one must."""
    for index, request in enumerate(run.requests):
        record = records.requests.get(index)
        if record is None or record.last_token_ns is None:
            status = "missing" if record is None else record.status
            message = f"{status}, but the real engine served it: the engine's settings are not those of the run"
            raise ScenarioError(run.source, f"request {request.id}", message)
