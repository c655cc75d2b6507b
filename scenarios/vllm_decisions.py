"""Decision logs: drive the core without time, one scheduling call a step, and print what it decided.

The format of cases and logs is that of the golden logs of the real schedulers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from ..policies.core.config import EngineConfig, Policies
from ..policies.core.engine import EngineCore
from ..policies.core.plan import StepPlan, StepResult
from ..policies.core.sequence import Sequence, State
from .driven_case import DrivenCase, Line

_DEFAULTS: dict[str, Any] = {
    "block_size": 16,
    "max_num_seqs": 1024,
    "max_num_batched_tokens": 8192,
    "num_blocks": 1000,
    "max_model_len": 1 << 60,
    "policy": "fcfs",
    "long_prefill_token_threshold": 0,
    "enable_chunked_prefill": True,
    "enable_prefix_caching": True,
    "scheduler_reserve_full_isl": True,
    "watermark": 0.0,
    "async_scheduling": False,
    "num_speculative_tokens": 0,
}


def vllm_core(config: Mapping[str, Any]) -> EngineCore:
    """A core set as a case's `config` (vLLM's names) says. Raises ValueError for a key or a value that is none."""
    _check_config(config)
    c = _DEFAULTS | dict(config)
    by_priority = c["policy"] == "priority"
    threshold = c["long_prefill_token_threshold"]
    if threshold and 0 < threshold <= c["num_speculative_tokens"]:
        raise ValueError(
            f"config.long_prefill_token_threshold: {threshold} is below 1 + num_speculative_tokens, "
            "a combination at which vLLM 0.33 stops with an assertion"
        )
    policies = Policies.of(
        {
            "batching": {"name": "unified"},
            "scheduling": {"name": "priority" if by_priority else "fcfs"},
            "preemption": {"name": "least_urgent" if by_priority else "newest"},
            "chunk_size": {"name": "threshold", "tokens": threshold} if threshold else {"name": "unlimited"},
            "eviction": {"name": "lru"},
        }
    )
    engine = EngineConfig(
        num_blocks=c["num_blocks"],
        block_size=c["block_size"],
        max_num_seqs=c["max_num_seqs"],
        max_num_batched_tokens=c["max_num_batched_tokens"],
        max_model_len=c["max_model_len"],
        depth=2 if c["async_scheduling"] else 1,
        enable_prefix_caching=c["enable_prefix_caching"],
        enable_chunked_prefill=c["enable_chunked_prefill"],
        reserve_full_prompt=c["scheduler_reserve_full_isl"],
        watermark=c["watermark"],
        num_speculative_tokens=c["num_speculative_tokens"],
    )
    return EngineCore(engine, policies)


def _check_config(config: Mapping[str, Any]) -> None:
    for key, value in config.items():
        if key not in _DEFAULTS:
            raise ValueError(f"config.{key}: unknown key; choose {', '.join(sorted(_DEFAULTS))}")
        kinds = (int, float) if key == "watermark" else type(_DEFAULTS[key])
        if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
            raise ValueError(f"config.{key}: {value!r} is not of the type of {_DEFAULTS[key]!r}")
    if config.get("policy", "fcfs") not in ("fcfs", "priority"):
        raise ValueError(f"config.policy: {config['policy']!r} is unknown; choose fcfs, priority")


class VllmDecisions(DrivenCase):
    """A case of vLLM's scheduler, and the steps' outputs in flight."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        super().__init__(case, vllm_core(case["config"]))
        self._accept = {r["id"]: r.get("accept") or [0] for r in case["requests"]}
        self._pipe: deque[StepPlan | None] = deque()
        self._counted = [0, 0]  # prefix queries and hits since the last output
        self._just_finished = False

    def log(self) -> Iterator[Line]:
        """The decision log, a line a step in which there is anything to say."""
        core, arrivals, step = self.core, deque(self._requests), 0
        while True:
            while arrivals and arrivals[0]["arrival_step"] <= step:
                self._add(arrivals.popleft())
            if core.running or core.waiting or self._just_finished:
                yield self._step(step)
            elif self._pipe:
                self._deliver(self._pipe.popleft())
                continue
            elif not arrivals:
                return
            else:
                step = arrivals[0]["arrival_step"] - 1  # nothing is said of idle steps
            step += 1

    def _step(self, step: int) -> Line:
        core = self.core
        evicted_before = core.kv_cache.pool.num_evicted
        plan = core.plan_step(step)
        line: Line = {"step": step, **self._scheduled(plan)}
        line["num_evicted"] = core.kv_cache.pool.num_evicted - evicted_before
        line["finished"] = []
        line["free_blocks_end"] = line["free_blocks"]
        if core.waiting and not (core.running or line["preempted"] or any(self._pipe)):
            raise self._stuck(step)
        self._pipe.append(plan)
        self._just_finished = False
        if len(self._pipe) == core.config.depth:
            line["finished"] = self._deliver(self._pipe.popleft())
            line["prefix_queries"], line["prefix_hits"] = self._counted
            self._counted = [0, 0]
            line["free_blocks_end"] = core.num_free_blocks
        return line

    def _scheduled(self, plan: StepPlan | None) -> Line:
        """What a plan decided, under the log's keys."""
        line: Line = {"scheduled": {}, "new": {}, "resumed": {}, "preempted": [], "spec": {}}
        line |= {"num_running": 0, "num_waiting": 0, "free_blocks": self.core.num_free_blocks}
        if plan is None:
            return line
        line["scheduled"] = {sequence.id: num_tokens for sequence, num_tokens in self._given(plan).items()}
        line["spec"] = {row.sequence.id: row.num_drafts for row in plan.rows if row.num_drafts}
        line["preempted"] = [preemption.sequence.id for preemption in plan.preempted]
        for sequence, num_cached_tokens, resumed in plan.admitted:
            line["resumed" if resumed else "new"][sequence.id] = num_cached_tokens
            if not resumed and self.core.config.enable_prefix_caching:
                self._counted[0] += sequence.prompt_tokens
                self._counted[1] += num_cached_tokens
        line["num_running"], line["num_waiting"] = plan.num_running, plan.num_waiting
        return line

    def _deliver(self, plan: StepPlan | None) -> list[str]:
        """The fake model's output of a step; returns who finished."""
        if plan is None:
            return []
        tokens, accepted = {}, {}
        for sequence in self._members(plan):
            tokens[sequence.id] = self._next_tokens(sequence, 1)
        for row in plan.rows:
            if row.samples and row.sequence.state is not State.ENDED:
                count = 0
                if row.num_drafts:
                    count = self._accepted(row.sequence, row.num_drafts)
                    accepted[row.sequence.id] = count
                tokens[row.sequence.id] = self._next_tokens(row.sequence, 1 + count)
        result = StepResult(0, accepted=accepted, tokens=tokens if self.literal else None)
        events = self.core.commit_step(plan, result, self.core.now_ns)
        self._just_finished = bool(events.finished)
        return [sequence.id for sequence in events.finished]

    def _accepted(self, sequence: Sequence, num_drafts: int) -> int:
        accept = self._accept[sequence.id]
        left = sequence.end - sequence.num_tokens - 1
        return int(min(accept[sequence.num_verified % len(accept)], num_drafts, left))
