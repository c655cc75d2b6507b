"""Which policies SGLang's keys name: the sglang preset in this project's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SCHEDULE_POLICIES = {
    "fcfs": "fcfs",
    "lpm": "lpm",
    "dfs-weight": "dfs_weight",
    "lof": "lof",
    "hrrn": "hrrn",
    "random": "random",
    "shortest-prefill-first": "shortest_prefill_first",
}
"""SGLang's names, and this project's."""
NEED_A_TREE = frozenset({"lpm", "dfs-weight", "hrrn"})
"""Without the radix cache SGLang runs these as fcfs."""
Spec = dict[str, object]


def scheduling_of(schedule_policy: str, *, disable_radix_cache: bool, enable_priority_scheduling: bool) -> Spec:
    """The scheduling policy that SGLang's keys ask for."""
    if disable_radix_cache and schedule_policy in NEED_A_TREE:
        schedule_policy = "fcfs"
    if enable_priority_scheduling and schedule_policy == "fcfs":
        return {"name": "priority", "by": "entry"}
    if enable_priority_scheduling and schedule_policy == "lof":
        return {"name": "lof", "urgent_first": True}
    return {"name": SCHEDULE_POLICIES[schedule_policy]}


def batching_of(engine: Mapping[str, Any]) -> Spec:
    """The batching policy of an engine with SGLang's keys, all of them given."""
    chunk = engine["chunked_prefill_size"]
    return {
        "name": "prefill_first",
        "chunked_prefill_size": chunk if chunk > 0 else None,
        "max_prefill_tokens": engine["max_prefill_tokens"],
        "conservativeness": engine["schedule_conservativeness"],
        "mixed_chunk": engine["enable_mixed_chunk"] and chunk > 0,  # where nothing is chunked SGLang mixes nothing
        "prefill_decode_interval": engine["prefill_decode_interval"],
        "preempts_by_priority": engine["enable_priority_scheduling"],
    }
