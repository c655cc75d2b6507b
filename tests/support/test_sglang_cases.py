"""The random cases of SGLang are repeatable, come to an end, and reach the corners that a fast core may get wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from llmsim.tests.support.plain_sglang import PlainSglangRun
from llmsim.tests.support.plain_sglang_scheduler import OutOfMemory
from llmsim.tests.support.sglang_cases import random_case

NUM_SEEDS = 300
CORNERS = (
    "mode mixed",
    "retracted",
    "preempted by priority",
    "aborted",
    "evicted",
    "chunk goes on without memory",
    "out of memory",
    "prefill put off by the interval",
    "late behind another of the queue",
    "too many wait to be matched",
    "refreshed again",
    "simulated to its end",
    "resumed",
    "cached",
)


def test_a_seed_always_gives_the_same_case() -> None:
    assert [random_case(seed) for seed in range(50)] == [random_case(seed) for seed in range(50)]
    assert len({str(random_case(seed)) for seed in range(50)}) == 50


def test_the_cases_end_and_reach_the_corners() -> None:
    seen: Counter[str] = Counter()
    for seed in range(NUM_SEEDS):
        case = random_case(seed)
        ended: list[str] = []
        try:
            ended += _counted(PlainSglangRun(case, seen).lines(), seen)
        except OutOfMemory:
            seen["out of memory"] += 1
            continue
        assert sorted(ended) == sorted(request["id"] for request in case["requests"]), f"seed {seed}"
    assert not [corner for corner in CORNERS if seen[corner] == 0], seen
    assert seen["out of memory"] < NUM_SEEDS // 40


def _counted(lines: Iterable[dict[str, Any]], seen: Counter[str]) -> list[str]:
    """Count what a log alone tells; returns who ended."""
    ended: list[str] = []
    gone: set[str] = set()
    for line in lines:
        seen[f"mode {line['mode']}"] += 1
        seen["retracted"] += len(line["retracted"])
        seen["aborted"] += len(line["aborted"])
        seen["evicted"] += line["evicted_tokens"]
        seen["resumed"] += len(gone & line["prefix"].keys())
        seen["cached"] += sum(line["prefix"].values())
        gone = (gone | set(line["retracted"])) - line["prefix"].keys()
        ended += line["finished"] + line["aborted"]
    return ended
