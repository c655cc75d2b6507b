"""Random cases for SGLang's scheduler in the format of its golden cases: small, adversarial, and able to finish."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from .contents import Text, random_text

Case = dict[str, Any]

KINDS = (
    *("few", "many", "shared", "slots", "slots", "crowd"),
    *("pressure", "pressure", "pressure", "starved", "starved", "starved", "chunks"),
)
PRIORITIES = ((0,), (0, 20), (0, 20), (0, 9, 10, 11, 22, 40), (-30, -15, 0, 15, 30))
EVICTIONS = ("lru", "lru", "lru", "lfu", "lfu", "slru", "priority", "priority", "fifo", "filo", "mru")
POLICIES = ("fcfs", "fcfs", "lpm", "lpm", "dfs-weight", "hrrn", "lof")


@dataclass(frozen=True, slots=True)
class Scale:
    """How much a case holds; lengths are in tokens, gaps between arrivals in steps."""

    num_requests: int
    most_running: int
    most_prompt: int
    most_output: int
    gaps: tuple[int, ...]


def random_case(seed: int) -> Case:
    """The case of a seed: `config` and `requests`.

    Each request fits alone with all its tokens, and a chunk holds a page, so that nobody waits for ever. A chunk that
    goes on while others decode may still find no memory.
    """
    rng = Random(seed)
    kind = rng.choice(KINDS)
    page = rng.choice((1, 1, 4) if kind in ("crowd", "starved") else (1, 1, 1, 4, 4, 16))
    scale = _scale(rng, kind, page)
    requests = _requests(rng, scale, kind, page)
    return {"config": _config(rng, kind, page, scale, requests), "requests": requests}


def _scale(rng: Random, kind: str, page: int) -> Scale:
    gaps = rng.choice(((0,), (0, 0, 0, 0, 6), (0, 0, 1), (0, 1, 2, 5), (0, 0, 3, 3, 60)))
    running = rng.choice((1, 2, 3, 4, 8, 16))
    if kind == "crowd":
        return Scale(rng.randint(131, 145), rng.choice((2, 8, 32)), 2 * page, 3, (0,))
    if kind == "shared":
        return Scale(rng.randint(6, 24), running, 90, 6, (0, 0, 0, 2))
    if kind == "chunks":
        return Scale(rng.randint(4, 24), running, max(40, 4 * page), 12, gaps)
    if kind == "starved":
        return Scale(rng.randint(4, 10), rng.choice((2, 3, 8)), 34, 60, (0, 1, 3, 9))
    if kind == "slots":
        return Scale(rng.randint(8, 30), rng.choice((1, 2, 2, 3, 4)), 2 * page + 6, 10, gaps)
    if kind == "pressure":
        return Scale(rng.randint(8, 30), rng.choice((4, 8, 16, 32)), page + 4, page + 30, (0, 0, 1, 3))
    num_requests = rng.randint(1, 8) if kind == "few" else rng.randint(12, 40)
    return Scale(num_requests, running, 3 * page + 5, rng.choice((1, 3, 10)), gaps)


def _requests(rng: Random, scale: Scale, kind: str, page: int) -> list[Case]:
    alphabet = rng.choice((1, 2, 3, 50))
    levels = rng.choice(PRIORITIES[kind == "slots" :])
    share_ignoring = rng.choice((0.0, 0.0, 0.3, 1.0))
    names = rng.sample(range(1000), scale.num_requests)
    step = rng.choice((0, 0, 3))
    texts: list[Text] = []
    requests = []
    for index, name in enumerate(names):
        lengths = _lengths(rng, kind, page, scale)
        earlier = [] if kind == "starved" and rng.random() < 0.7 else texts[-20:]
        text = random_text(rng, earlier, index, lengths, alphabet)
        texts.append(text)
        request = {"id": f"r{name}", "arrival_step": step, "priority": rng.choice(levels)} | text.as_request()
        if rng.random() < share_ignoring:
            request["ignore_eos"] = True
        requests.append(request)
        step += rng.choice(scale.gaps) if kind != "crowd" else 0
    return requests


def _lengths(rng: Random, kind: str, page: int, scale: Scale) -> tuple[int, int]:
    """Tokens of prompt and output; where chunks are to starve beside long decodes, one of them is long."""
    prompt, output = _length(rng, page, scale.most_prompt), _length(rng, page, scale.most_output)
    if kind == "starved" and rng.random() < 0.5:
        return scale.most_prompt - rng.randint(0, 9), rng.randint(1, 3)
    return (min(prompt, 5), max(40, output)) if kind == "starved" else (prompt, output)


def _length(rng: Random, page: int, most: int) -> int:
    """A number of tokens, often at or next to a page's border, or one."""
    kind = rng.random()
    if kind < 0.15:
        return 1
    if kind < 0.4 and page > 1:
        return max(1, rng.randint(1, max(1, most // page)) * page + rng.choice((-1, 0, 1)))
    return rng.randint(max(1, most // 2), most) if kind < 0.7 else rng.randint(1, most)


def _config(rng: Random, kind: str, page: int, scale: Scale, requests: list[Case]) -> Case:
    config: Case = {
        "max_total_tokens": _memory(rng, kind, page, requests),
        "page_size": page,
        "max_running_requests": scale.most_running,
        "max_prefill_tokens": rng.choice((1, page + 3, 40, 40, 1024, 1024)),
        "schedule_policy": rng.choice(POLICIES),
        "schedule_conservativeness": rng.choice((0.0, 0.05, 0.3, 0.3, 1.0, 1.5)),
        "enable_mixed_chunk": rng.random() < 0.35,
        "disable_radix_cache": rng.random() < 0.12,
        "radix_eviction_policy": rng.choice(EVICTIONS),
        "prefill_decode_interval": rng.choice((2, 6, 8) if kind == "starved" else (0, 0, 0, 0, 1, 2, 5)),
        "chunked_prefill_size": _chunk_size(rng, kind, page),
    }
    if kind in ("pressure", "starved"):
        config["schedule_conservativeness"] = rng.choice((0.0, 0.0, 0.0, 0.05, 0.3))
    if kind == "slots":
        config["schedule_policy"] = rng.choice(("fcfs", "fcfs", "lof"))
    if config["schedule_policy"] in ("fcfs", "lof") and (kind == "slots" or rng.random() < 0.7):
        config["enable_priority_scheduling"] = True
        config["schedule_low_priority_values_first"] = rng.random() < 0.5
    return config


def _chunk_size(rng: Random, kind: str, page: int) -> int:
    if kind not in ("chunks", "starved") and rng.random() < 0.4:
        return rng.choice((-1, 1000))
    if kind == "starved":
        return page + rng.choice((1, 2, 4))
    return page + rng.choice((1, 2, 5, 10, 30)) if rng.random() < 0.9 else page


def _memory(rng: Random, kind: str, page: int, requests: list[Case]) -> int:
    """Tight, middling or roomy; never too little for the largest request alone."""
    needs = [(len(r["prompt_token_ids"]) + r["output_len"]) // page * page + 3 * page for r in requests]
    total = sum(needs)
    if kind == "starved":
        most = (1, 8)
    elif kind == "pressure":
        most = (2, max(needs), total // 4)
    else:
        most = (2, 2 * max(needs), total // 4, total // 2, total)
    return max(needs) + 3 + rng.randint(0, rng.choice(most))
