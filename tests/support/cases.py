"""Random cases for schedulers in the format of golden/README.md: small, adversarial, and able to finish."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from .contents import Text, random_text

Case = dict[str, Any]

DEFAULTS: Case = {
    "policy": "fcfs",
    "async_scheduling": False,
    "enable_chunked_prefill": True,
    "enable_prefix_caching": True,
    "long_prefill_token_threshold": 0,
    "num_speculative_tokens": 0,
    "scheduler_reserve_full_isl": True,
    "watermark": 0.0,
}

KINDS = ("few", "many", "many", "pressure", "pressure", "pressure", "brief", "brief", "long", "crowd")


@dataclass(frozen=True, slots=True)
class Scale:
    """How much a case holds; lengths are in blocks, gaps between arrivals in steps."""

    num_requests: int
    max_num_seqs: int
    prompt_blocks: int
    output_blocks: int
    gaps: tuple[int, ...]


def random_case(seed: int) -> Case:
    """The case of a seed: `config` and `requests`.

    It never stalls: each request fits alone with all its tokens and drafts; a step has room for a decode with
    its drafts and, without chunked prefill, for the longest request.
    """
    rng = Random(seed)
    scale = _scale(rng)
    switches = _switches(rng)
    block_size = rng.choice((1, 2, 2, 2, 4, 4, 16, 16))
    requests = _requests(rng, scale, block_size, switches["num_speculative_tokens"])
    limits = _limits(rng, scale, switches, requests) | {"block_size": block_size}
    limits |= {"num_blocks": _num_blocks(rng, block_size, switches["num_speculative_tokens"], requests)}
    told = {key: value for key, value in switches.items() if value != DEFAULTS[key] or rng.random() < 0.5}
    return {"config": limits | told, "requests": requests}


def _scale(rng: Random) -> Scale:
    gaps = rng.choice(((0,), (0, 0, 0, 0, 6), (0, 0, 1), (0, 1, 2, 5), (0, 0, 3, 3, 60)))
    kind = rng.choice(KINDS)
    if kind == "crowd":
        return Scale(rng.randint(60, 75), rng.choice((60, 64, 80)), 1, rng.randint(3, 6), (0,))
    if kind == "long":
        return Scale(rng.randint(3, 12), rng.choice((2, 4, 8)), 3, rng.randint(6, 12), gaps)
    if kind == "brief":
        return Scale(rng.randint(30, 60), rng.choice((8, 16)), 1, rng.randint(1, 2), (0, 1))
    if kind == "pressure":
        return Scale(rng.randint(12, 40), rng.choice((4, 8, 16, 32)), 2, rng.randint(2, 8), (0, 0, 1, 3))
    num_requests = rng.randint(1, 12) if kind == "few" else rng.randint(12, 40)
    max_num_seqs = rng.choice((1, 2, 3, 4, 8, 16, 32))
    return Scale(num_requests, max_num_seqs, rng.randint(2, 8), rng.randint(1, 3), gaps)


def _switches(rng: Random) -> Case:
    """What is on and off; drafts are taken with synchronous scheduling only, as in the specification."""
    is_async = rng.random() < 0.4
    num_drafts = 0 if is_async else rng.choice((0, 0, 1, 2, 3, 4))
    thresholds = [0, 0, 0] + [tokens for tokens in (1, 2, 4, 5, 8, 32) if tokens > num_drafts]
    return {
        "policy": rng.choice(("fcfs", "fcfs", "priority", "priority", "priority")),
        "async_scheduling": is_async,
        "enable_chunked_prefill": rng.random() > 0.12,
        "enable_prefix_caching": rng.random() > 0.08,
        "long_prefill_token_threshold": rng.choice(thresholds),
        "num_speculative_tokens": num_drafts,
        "scheduler_reserve_full_isl": rng.random() < 0.6,
        "watermark": rng.choice((0.0, 0.0, 0.01, 0.05, 0.1, 0.3)),
    }


def _limits(rng: Random, scale: Scale, switches: Case, requests: list[Case]) -> Case:
    least = max(scale.max_num_seqs, 1 + switches["num_speculative_tokens"])
    if not switches["enable_chunked_prefill"]:
        least = max(least, *(_num_tokens(request) for request in requests))
    extra = rng.choice((0, 0, 0, 1, 1, 3, 8, 16, 40, 200, 2000))
    return {"max_num_seqs": scale.max_num_seqs, "max_num_batched_tokens": least + extra}


def _num_blocks(rng: Random, block_size: int, num_drafts: int, requests: list[Case]) -> int:
    """Tight, middling or roomy, the null block included; never too few for the largest request alone."""
    needs = [-(-(_num_tokens(request) + num_drafts) // block_size) for request in requests]
    slack = rng.randint(0, rng.choice((2, 2 * max(needs), sum(needs) // 4, sum(needs) // 2, sum(needs))))
    if len(requests) >= 60 and rng.random() < 0.5:
        slack = sum(needs)  # a crowd that can run all at once
    return 1 + max(needs) + slack


def _num_tokens(request: Case) -> int:
    return len(request["prompt_token_ids"]) + int(request["output_len"])


def _requests(rng: Random, scale: Scale, block_size: int, num_drafts: int) -> list[Case]:
    steps = _arrival_steps(rng, scale)
    alphabet = rng.choice((1, 2, 3, 50))
    priorities = _priorities(rng, scale.num_requests)
    texts: list[Text] = []
    requests = []
    for index, step in enumerate(steps):
        num_prompt = _length(rng, block_size, scale.prompt_blocks)
        num_output = _length(rng, block_size, scale.output_blocks)
        text = random_text(rng, texts, index, (num_prompt, num_output), alphabet)
        texts.append(text)
        request = {"id": f"r{index:04d}", "arrival_step": step, "priority": priorities[index]}
        requests.append(request | text.as_request() | _accept(rng, num_drafts))
    return requests


def _priorities(rng: Random, num_requests: int) -> list[int]:
    """Few levels or many; sometimes the later are the more urgent, so that victims stand at the front."""
    num_levels = rng.choice((1, 2, 3, 10))
    levels = [rng.randrange(num_levels) for _ in range(num_requests)]
    return sorted(levels, reverse=True) if rng.random() < 0.5 else levels


def _length(rng: Random, block_size: int, max_blocks: int) -> int:
    """A number of tokens, often at or next to a block's border."""
    if rng.random() < 0.5:
        return max(1, rng.randint(1, max_blocks) * block_size + rng.choice((-1, 0, 1)))
    return rng.randint(1, max_blocks * block_size)


def _arrival_steps(rng: Random, scale: Scale) -> list[int]:
    """All at once, in bursts, or one by one; the longest gaps are idle, so that the pipe drains."""
    steps = [rng.choice((0, 0, 3))]
    while len(steps) < scale.num_requests:
        steps.append(steps[-1] + rng.choice(scale.gaps))
    return steps


def _accept(rng: Random, num_drafts: int) -> Case:
    if num_drafts == 0:
        return {}
    return {"accept": [rng.randint(0, num_drafts) for _ in range(rng.randint(1, 6))]}
