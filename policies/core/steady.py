"""A stretch of steps in which nothing is decided: each is one more token for each member of the decode batch."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Items
from typing import TYPE_CHECKING

from .applying import take_stock
from .plan import Eviction, Gap, StepPlan

if TYPE_CHECKING:
    from .engine import EngineCore


class SteadyDecode:
    """Carries such a stretch out: `plan` and `commit` in turn, then `end`. It gives what single steps would."""

    def __init__(self, core: EngineCore) -> None:
        self._core = core
        self._on_decode: Callable[[], None] | None = getattr(core.policies.batching, "decoded", None)

    def num_steps(self) -> int:
        """How many of the next steps are certain to be of this kind as long as nobody arrives, stops or is aborted.

        Nobody waits, all that run are in the batch, none ends by length, blocks suffice, and the batching policy
        promises (`decodes_alone`) to do nothing else then. None where grants are told: such steps have no plans.
        """
        core = self._core
        batch, config = core.batch, core.config
        if core.kv_cache.grants is not None:
            return 0
        if core.loose or core.waiting or core.host.swaps or not 0 < batch.size <= config.max_num_batched_tokens:
            return 0
        if not getattr(core.policies.batching, "decodes_alone", False) or len(core.in_flight) != config.depth - 1:
            return 0
        if any(plan.rows or plan.detached or plan.batch_number is None or _tells(plan) for plan in core.in_flight):
            return 0
        return core.kv_cache.steps_that_fit(batch, batch.steps_to_end() - 1)

    def plan(self, now_ns: int) -> Items[Eviction]:
        """Plan one step; returns what was evicted for it."""
        core = self._core
        core.now_ns = now_ns
        core.num_steps += 1
        cache = core.kv_cache
        cache.advance(core.batch, is_ahead=bool(core.in_flight))
        core.batch.plan()
        if self._on_decode is not None:
            self._on_decode()
        if not cache.evictions:
            return ()
        evictions, cache.evictions = cache.evictions, []
        return evictions

    def commit(self, now_ns: int) -> Items[Gap]:
        """Commit the oldest step; returns the gaps since the members' last tokens."""
        core = self._core
        core.now_ns = now_ns
        return core.batch.commit(now_ns, core.batch.size)

    def end(self, now_ns: int, evictions: Items[Eviction]) -> StepPlan:
        """The plan of the last step, planned at `now_ns`, which is still in flight (asynchronous scheduling)."""
        core = self._core
        batch = core.batch
        plan = StepPlan(core.num_steps - 1, now_ns, batch_number=batch.planned, num_decodes=batch.size)
        plan.decode_context_tokens = batch.context_tokens
        plan.max_decode_context = batch.max_context()
        plan.evictions = evictions
        take_stock(core, plan)
        core.in_flight[-1] = plan
        return plan


def _tells(plan: StepPlan) -> bool:
    """Whether events beside evictions are to be written down when it is committed."""
    return bool(plan.preempted or plan.swaps or plan.aborted)
