"""The random cases are repeatable, valid, and reach the corners that a fast core may get wrong."""

from __future__ import annotations

from collections import Counter
from typing import Any

from llmsim.tests.support.cases import random_case
from llmsim.tests.support.plain_vllm import decision_log

NUM_SEEDS = 300


def test_a_seed_always_gives_the_same_case() -> None:
    assert [random_case(seed) for seed in range(50)] == [random_case(seed) for seed in range(50)]
    assert len({str(random_case(seed)) for seed in range(50)}) == 50


def test_every_case_is_one_that_the_engine_takes() -> None:
    for seed in range(NUM_SEEDS):
        config = random_case(seed)["config"]
        num_decode = 1 + config.get("num_speculative_tokens", 0)
        assert config["max_num_batched_tokens"] >= max(config["max_num_seqs"], num_decode)
        assert config.get("long_prefill_token_threshold", 0) in (0, *range(num_decode, 33))
        assert num_decode == 1 or not config.get("async_scheduling", False)


def test_every_request_of_every_case_gets_all_its_outputs() -> None:
    for seed in range(NUM_SEEDS):
        case = random_case(seed)
        finished = [request_id for line in decision_log(case) for request_id in line["finished"]]
        assert sorted(finished) == [request["id"] for request in case["requests"]], f"seed {seed}"


def test_the_cases_reach_the_corners() -> None:
    seen: Counter[str] = Counter()
    for seed in range(NUM_SEEDS):
        _count(decision_log(random_case(seed), seen), seen)
    corners = (
        "preempted",
        "resumed",
        "evicted",
        "hits",
        "placeholder drafts at admission",
        "idle gap",
        "60 running",
        "drafts clipped",
        "equal blocks coexist",
        "victim scheduled earlier in the step",
        "victim skipped earlier in the step",
        "other requests go on after a self-preemption",
        "finished from the waiting queue",
    )
    assert not [corner for corner in corners if seen[corner] == 0], seen


def _count(lines: list[dict[str, Any]], seen: Counter[str]) -> None:
    """Count what a log alone tells."""
    previous = 0
    for line in lines:
        admitted = line["new"] | line["resumed"]
        seen["preempted"] += len(line["preempted"])
        seen["resumed"] += len(line["resumed"])
        seen["evicted"] += line["num_evicted"]
        seen["hits"] += sum(admitted.values())
        seen["placeholder drafts at admission"] += len(line["spec"].keys() & admitted.keys())
        seen["idle gap"] += line["step"] > previous + 1
        seen["60 running"] += line["num_running"] >= 60
        previous = line["step"]
