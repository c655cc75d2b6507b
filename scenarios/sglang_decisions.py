"""SGLang's decision logs: drive the core without time, one round a step, and print what it decided.

The format of cases and logs is that of the golden logs of the real scheduler, whose loop runs without overlap.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from ..policies.batching.prefill_first import PrefillFirst
from ..policies.core.config import EngineConfig, Policies
from ..policies.core.engine import EngineCore, radix_cache_of
from ..policies.core.plan import StepPlan, StepResult
from ..policies.core.radix_cache import OutOfMemory
from ..policies.core.sequence import State
from .driven_case import DrivenCase, Line
from .sglang_policies import SCHEDULE_POLICIES, batching_of, scheduling_of

_DEFAULTS: dict[str, Any] = {
    "max_total_tokens": 100_000,
    "page_size": 1,
    "chunked_prefill_size": 8192,
    "max_prefill_tokens": 16384,
    "max_running_requests": 256,
    "schedule_policy": "fcfs",
    "schedule_conservativeness": 1.0,
    "enable_mixed_chunk": False,
    "disable_radix_cache": False,
    "radix_eviction_policy": "lru",
    "enable_priority_scheduling": False,
    "schedule_low_priority_values_first": False,
    "prefill_decode_interval": 0,
}


def sglang_core(config: Mapping[str, Any]) -> EngineCore:
    """A core set as a case's `config` (SGLang's names) says. Raises ValueError for a key or a value that is none."""
    _check_config(config)
    c = _DEFAULTS | dict(config)
    page, chunk = c["page_size"], c["chunked_prefill_size"]
    radix_off, by_priority = c["disable_radix_cache"], c["enable_priority_scheduling"]
    specs: dict[str, dict[str, Any]] = {
        "batching": batching_of(c) | {"stepwise": True},
        "scheduling": scheduling_of(
            c["schedule_policy"], disable_radix_cache=radix_off, enable_priority_scheduling=by_priority
        ),
        "preemption": {"name": "fewest_outputs"},
        "chunk_size": {"name": "unlimited"},
        "eviction": {"name": c["radix_eviction_policy"]},
    }
    engine = EngineConfig(
        num_blocks=c["max_total_tokens"] // page + 1,
        block_size=page,
        max_num_seqs=c["max_running_requests"],
        max_num_batched_tokens=1 << 60,
        enable_prefix_caching=not c["disable_radix_cache"],
        enable_chunked_prefill=chunk > 0,
        prefix_index="radix_tree",
        refuses_what_never_fits=False,
        keeps_urgent=not c["schedule_low_priority_values_first"],
    )
    return EngineCore(engine, Policies.of(specs))


def _check_config(config: Mapping[str, Any]) -> None:
    for key, value in config.items():
        if key not in _DEFAULTS:
            raise ValueError(f"config.{key}: unknown key; choose {', '.join(sorted(_DEFAULTS))}")
        kinds = (int, float) if key == "schedule_conservativeness" else type(_DEFAULTS[key])
        if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
            raise ValueError(f"config.{key}: {value!r} is not of the type of {_DEFAULTS[key]!r}")
    name = config.get("schedule_policy", "fcfs")
    if name not in SCHEDULE_POLICIES:
        raise ValueError(f"config.schedule_policy: {name!r} is unknown; choose {', '.join(SCHEDULE_POLICIES)}")
    least = {"max_total_tokens": 1, "page_size": 1, "max_running_requests": 1, "max_prefill_tokens": 1}
    for key, bound in least.items():
        if key in config and config[key] < bound:
            raise ValueError(f"config.{key}: {config[key]} is out of range; at least {bound}")


class SglangDecisions(DrivenCase):
    """A case of SGLang's scheduler."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        super().__init__(case, sglang_core(case["config"]))
        self._interval = case["config"].get("prefill_decode_interval", 0)
        self._num_idle = 0  # lines in a row without work although someone waits
        self._low_first = bool(case["config"].get("schedule_low_priority_values_first"))

    def log(self) -> Iterator[Line]:
        """The decision log, a line a step in which anything runs, waits or has just ended."""
        core, arrivals, step, was_busy = self.core, deque(self._requests), 0, False
        while True:
            while arrivals and arrivals[0]["arrival_step"] <= step:
                self._add(arrivals.popleft())
            if core.running or core.waiting or was_busy:
                was_busy = bool(core.running or core.waiting)
                yield self._step(step)
            elif not arrivals:
                return
            else:
                step = arrivals[0]["arrival_step"] - 1  # nothing is said of idle steps
            step += 1

    def _urgency(self, request: Mapping[str, Any]) -> int:
        priority = super()._urgency(request)
        return priority if self._low_first else -priority

    def _step(self, step: int) -> Line:
        core = self.core
        cache, batching = radix_cache_of(core), core.policies.batching
        assert isinstance(batching, PrefillFirst), batching
        evicted_before = cache.pool.num_evicted
        try:
            plan = core.plan_step(step)
        except OutOfMemory as error:
            raise ValueError(f"step {step}: {error}") from None
        if plan is None:
            batching.pass_idle()
        line: Line = {"step": step, **self._scheduled(plan)}
        line["chunked"] = batching.chunked.id if batching.chunked else None
        line["finished"] = self._deliver(plan) if plan else []
        line["ratio"] = round(batching.ratio.value, 6)
        page = cache.block_size
        line["free_tokens"] = cache.pool.num_blank * page
        line["evictable"], line["protected"] = cache.tree.num_evictable, cache.tree.num_protected
        line["evicted_tokens"] = (cache.pool.num_evicted - evicted_before) * page
        self._num_idle = self._num_idle + 1 if core.waiting and not core.running and line["mode"] == "idle" else 0
        if self._num_idle > self._interval:
            raise self._stuck(step)
        return line

    def _scheduled(self, plan: StepPlan | None) -> Line:
        """What a plan decided, under the log's keys."""
        line: Line = {"mode": "idle", "batch": {}, "prefix": {}, "retracted": [], "aborted": []}
        if plan is None:
            return line
        given = self._given(plan)
        line["batch"] = {sequence.id: num_tokens for sequence, num_tokens in given.items()}
        line["prefix"] = {row.sequence.id: row.num_computed for row in plan.rows if row.is_prefill}
        if given:
            decodes = len(given) > len(line["prefix"])
            line["mode"] = ("mixed" if decodes else "prefill") if line["prefix"] else "decode"
        line["retracted"] = [preemption.sequence.id for preemption in plan.preempted]
        line["aborted"] = [sequence.id for sequence in plan.aborted]
        return line

    def _deliver(self, plan: StepPlan) -> list[str]:
        """The fake model's output of a step; returns who finished."""
        samplers = self._members(plan) + [row.sequence for row in plan.rows if row.samples]
        tokens = {s.id: self._next_tokens(s, 1) for s in samplers if s.state is not State.ENDED}
        result = StepResult(0, tokens=tokens if self.literal else None)
        finished = self.core.commit_step(plan, result, self.core.now_ns).finished
        return [sequence.id for sequence in finished if sequence not in plan.aborted]
