"""Random limits and random requests for a core, tight enough that every reason to wait shows up."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any

from llmsim.policies.core.engine import EngineCore
from llmsim.policies.core.request import Prompt, Request

from .driven_core import BY_PRIORITY, VLLM, DrivenCore, core_of


def random_specs(random: Random) -> dict[str, dict[str, Any]]:
    """vLLM's policies, with a chunk size or without."""
    chunk_size = random.choice(
        ({"name": "unlimited"}, {"name": "fixed", "tokens": random.randint(1, 24)}, {"name": "threshold", "tokens": 5})
    )
    return random.choice((VLLM, BY_PRIORITY)) | {"chunk_size": chunk_size}


def random_core(random: Random, **pinned: Any) -> EngineCore:
    """A core with tight limits; `pinned` ones are as given."""
    limits: dict[str, Any] = {
        "num_blocks": random.choice((12, 25, 60, 300)),
        "block_size": random.choice((1, 2, 4, 16)),
        "max_num_seqs": random.choice((1, 3, 8, 64)),
        "max_num_batched_tokens": random.choice((6, 17, 40, 400)),
        "depth": random.choice((1, 2)),
        "enable_prefix_caching": random.random() < 0.8,
        "reserve_full_prompt": random.random() < 0.7,
        "watermark": random.choice((0.0, 0.0, 0.1)),
    }
    if limits["depth"] == 1:
        limits["num_speculative_tokens"] = random.choice((0, 0, 3))
    if limits.get("num_speculative_tokens"):
        # A request whose drafts do not fit beside its own tokens gets nowhere, as in vLLM.
        limits["num_blocks"] = random.choice((100, 300))
    specs = random_specs(random)
    return core_of(specs | pinned.pop("specs", {}), **limits | pinned)


def random_requests(random: Random, count: int) -> list[Request]:
    """Requests that share beginnings, in order of arrival."""
    requests, now_ns = [], 0
    for number in range(count):
        now_ns += random.choice((0, 0, 3, 20, 150))
        spans = [(random.randrange(3), 0, random.randint(0, 30)), (100 + number, 0, random.randint(1, 25))]
        priority = random.randrange(3)
        requests.append(Request(f"r{number}", now_ns, Prompt(spans), random.randint(1, 30), 1000 + number, priority))
    return requests


def random_stops(random: Random, requests: list[Request]) -> dict[str, int]:
    """Requests that end by themselves, and after how many outputs."""
    return {r.id: random.randint(1, r.max_tokens) for r in requests if random.random() < 0.3}


def drive(
    driven: DrivenCore,
    requests: list[Request],
    random: Random,
    each: Callable[[int], None] = lambda now_ns: None,
    abort_chance: float = 0.0,
) -> None:
    """Run the requests to their end; `each` is called with the time right before each step is planned.

    As a driver does, it hands arrivals over at step boundaries, at the time at which a step is planned.
    """
    now_ns, coming = 0, deque(requests)
    while coming or driven.is_busy:
        while coming and coming[0].arrival_ns <= now_ns:
            driven.add(coming.popleft(), now_ns)
        if driven.core.sequences and random.random() < abort_chance:
            driven.abort(random.choice(list(driven.core.sequences)), now_ns)
        each(now_ns)
        flight = driven.plan(now_ns)
        full = len(driven.pipe) == driven.core.config.depth
        now_ns += random.choice((0, 1, 7, 20))
        if driven.pipe and (full or flight is None):
            driven.commit(now_ns)
        elif flight is None and coming:
            now_ns = max(now_ns, coming[0].arrival_ns)
