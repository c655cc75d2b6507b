"""One small workload of each generator, and ways to look at it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from llmsim.policies.core.request import Arrival
from llmsim.policies.core.workload import Workload
from llmsim.scenarios.loading import scenario_from
from llmsim.scenarios.schema import Scenario
from llmsim.scenarios.workloads.building import build_workload

FREE = {"lognormal": {"mean": 40, "cv": 1.0}}

SMALL: dict[str, dict[str, Any]] = {
    "agent": {"requests": 200, "tenants": 3, "question_tokens": FREE},
    "independent": {"requests": 200, "prompt_tokens": FREE, "output_tokens": FREE},
    "few_shot": {"requests": 200, "tasks": 4, "order": "shuffled", "question_tokens": FREE},
    "rag": {"requests": 200, "corpus": 50, "question_tokens": FREE},
    "generated_shared_prefix": {"num_groups": 10, "prompts_per_group": 20, "question_len": FREE},
    "prefix_reuse": {
        "requests": 200,
        "block_tokens": 16,
        "rows": {"path": str(Path(__file__).with_name("prefix_reuse_rows.csv"))},
    },
    "multi_turn": {"sessions": 50, "user_tokens": FREE, "output_tokens": FREE},
    "mixture": {
        "requests": 100,
        "parts": [
            {"tenant": "chat", "weight": 3, "workload": {"type": "multi_turn", "turns": 4, "output_tokens": FREE}},
            {"tenant": "code", "workload": {"type": "agent", "tenants": 2, "question_tokens": FREE}},
            {"tenant": "search", "workload": {"type": "rag", "corpus": 20}},
        ],
    },
}
"""Settings of each type, small enough for tests."""


def scenario_with(kind: str, seed: int = 0, **changes: Any) -> Scenario:
    """A scenario with that small workload, changed."""
    plain: dict[str, Any] = {"name": "s", "model": "tiny", "hardware": {"gpu": "h100-sxm"}, "run": {"seed": seed}}
    return scenario_from(plain | {"workload": {"type": kind} | SMALL[kind] | changes})


def workload_of(kind: str, seed: int = 0, **changes: Any) -> Workload:
    """That small workload, changed."""
    return build_workload(scenario_with(kind, seed, **changes), print)


def whole(workload: Workload, service_ns: int = 1_000_000_000) -> Iterator[Arrival]:
    """All requests, each followed by what its end sets off, as if every one were served in the same time."""
    for arrival in workload.arrivals():
        waiting = [arrival]
        while waiting:
            yield (one := waiting.pop())
            waiting.extend(workload.on_finish(one.request.id, one.time_ns + service_ns))


def digest(workload: Workload) -> str:
    """A hash of everything that the workload says."""
    everything = hashlib.sha256()
    for arrival in whole(workload):
        everything.update(repr(arrival).encode())
    return everything.hexdigest()
