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
}
"""SGLang's names, and this project's."""
NEED_A_TREE = ("lpm", "dfs-weight", "hrrn")
"""Without the radix cache SGLang runs these as fcfs."""


def sglang_policies(engine: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Policy specifications by kind for an engine with SGLang's keys, all of them given."""
    by_priority, chunk = engine["enable_priority_scheduling"], engine["chunked_prefill_size"]
    order = SCHEDULE_POLICIES[engine["schedule_policy"]]
    if engine["disable_radix_cache"] and engine["schedule_policy"] in NEED_A_TREE:
        order = "fcfs"
    return {
        "batching": {
            "name": "prefill_first",
            "max_prefill_tokens": engine["max_prefill_tokens"],
            "conservativeness": engine["schedule_conservativeness"],
            "mixed_chunk": engine["enable_mixed_chunk"],
            "prefill_decode_interval": engine["prefill_decode_interval"],
            "preempts_by_priority": by_priority,
        },
        "scheduling": {"name": "priority", "by": "entry"} if by_priority and order == "fcfs" else {"name": order},
        "preemption": {"name": "fewest_outputs"},
        "chunk_size": {"name": "fixed", "tokens": chunk} if chunk > 0 else {"name": "unlimited"},
        "eviction": {"name": engine["radix_eviction_policy"]},
    }
