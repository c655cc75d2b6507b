"""`run.cache: warm`: the run begins with what a pass of the same traffic, served before, has left in the cache."""

from __future__ import annotations

from collections.abc import Callable

from ..policies.core.engine import EngineCore
from ..policies.core.workload import Workload
from ..sim.driver import SimDriver
from ..sim.executor import SimExecutor
from .assembly import Assembly
from .errors import ScenarioError
from .unrecorded import Unrecorded


def warm_up(
    core: EngineCore, assembly: Assembly, workload: Workload, on_progress: Callable[[int, int], None] | None
) -> int:
    """Serve the whole workload with an engine of its own, then let `core`, a fresh one, take over its KV cache.

    Nothing else is taken over: the run's clock begins at 0, its queue is empty and its policies know of nothing but
    the eviction policy, which goes with the cache. Returns how many blocks hold content then.
    """
    before = assembly.core()
    executor = SimExecutor(assembly.cost_model(), assembly.host_link)
    SimDriver(before, executor, workload, Unrecorded(), frontend=assembly.frontend(), on_progress=on_progress).run()
    core.take_over_cache(before)
    return core.kv_cache.index.num_evictable


def check_journal(assembly: Assembly) -> None:
    """Raises ScenarioError where a journal was asked for and the cache is warm: a replay begins with an empty one."""
    if assembly.scenario.run.cache == "warm":
        message = "'warm' goes without --journal: a replay begins with an empty cache"
        raise ScenarioError(assembly.scenario.source, "run.cache", message)
