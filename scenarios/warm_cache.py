"""`run.cache: warm`: the run begins with what a pass of the same traffic, served before, has left in the cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..policies.core.engine import EngineCore
from ..policies.core.estimator import StepTimeEstimator
from ..policies.core.journal import JournalWriter
from ..policies.core.workload import Workload
from ..sim.driver import SimDriver
from ..sim.executor import SimExecutor
from .assembly import Assembly
from .policy_watch import watched
from .unrecorded import Unrecorded


def warm_up(
    core: EngineCore,
    assembly: Assembly,
    workload: Workload,
    cost_model: StepTimeEstimator,
    on_progress: Callable[[int, int], None] | None = None,
    log: JournalWriter | None = None,
    asked: StepTimeEstimator | None = None,
) -> int:
    """Serve the whole workload with an engine of its own, then let `core`, a fresh one, take over its KV cache.

    Returns how many blocks hold content then. `cost_model` prices the steps; policies ask `asked`, or it too.
    """
    before = assembly.core(asked or cost_model)
    executor = SimExecutor(cost_model, assembly.host_link)
    with pass_before(core, before, assembly, log):
        SimDriver(
            *(before, executor, workload, Unrecorded()),
            frontend=assembly.frontend(),
            journal=log,
            on_progress=on_progress,
        ).run()
    return core.kv_cache.index.num_evictable


@contextmanager
def pass_before(core: EngineCore, before: EngineCore, assembly: Assembly, log: JournalWriter | None) -> Iterator[None]:
    """In here `before` serves the traffic of the run to come; at the end `core`, a fresh one, takes over its KV cache.

    Nothing else is taken over: the run's clock begins at 0, its queue is empty and its policies know of nothing but
    the eviction policy, which goes with the cache. A policy of a user's that is at fault becomes a ScenarioError.
    """
    if log is not None:
        log.begin_before()
    with watched(before, assembly.scenario.source):
        yield
    core.take_over_cache(before)
    if log is not None:
        log.taken_over()
