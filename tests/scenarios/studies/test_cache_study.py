"""Hit rates without time agree with their definition, with published figures, and stay below what is possible."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from llmsim.policies import registry
from llmsim.policies.core.request import Prompt, Request
from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.prefix_sharing import PrefixSharing, hit_rates
from llmsim.scenarios.studies.cache_replay import BELADY, Found, replay
from llmsim.scenarios.studies.cache_sources import Source
from llmsim.scenarios.studies.cache_study import CacheStudy, parse_blocks, parse_evictions
from llmsim.scenarios.studies.cache_trace import BlockTrace, BlockTraceWriter
from llmsim.tests.support.plain_block_cache import hits_of, most_hits
from llmsim.tests.support.shared import shared

NAMES = list(registry.policies("eviction"))
BLOCK = 16


def random_requests(random: Random, count: int, longest: int) -> list[list[int]]:
    """Chains of ids that share beginnings: a walk down a tree of a few branches."""
    return [[random.randrange(2) for _ in range(random.randint(0, longest))] for _ in range(count)]


def recorded(folder: Path, requests: list[list[int]]) -> BlockTrace:
    folder.mkdir(exist_ok=True)
    writer = BlockTraceWriter(folder, BLOCK)
    for ids in requests:
        writer.add(ids, BLOCK * len(ids))
    trace = writer.finish()
    trace.write_next_uses()
    return trace


@pytest.mark.parametrize("name", NAMES)
def test_a_cache_finds_what_its_definition_finds(name: str, tmp_path: Path) -> None:
    policy = registry.create("eviction", {"name": name})
    for seed in range(12):
        random = Random(f"{name} {seed}")
        requests = random_requests(random, 40, 6)
        trace = recorded(tmp_path / str(seed), requests)
        for num_blocks in (1, 3, 8, 20):
            hits = hits_of(requests, policy, num_blocks, BLOCK)
            shares = [found / len(ids) for found, ids in zip(hits, requests, strict=True) if ids]
            got = replay(trace, {"name": name}, num_blocks)
            assert got == Found(sum(hits), BLOCK * sum(hits), pytest.approx(np.mean(shares)))


def test_lru_finds_what_reuse_distances_say(tmp_path: Path) -> None:
    random = Random(5)
    requests = [ids for ids in random_requests(random, 300, 8) if ids]
    sharing = PrefixSharing(BLOCK)
    for number, ids in enumerate(requests):
        spans = [(7 * depth + content, 0, BLOCK) for depth, content in enumerate(ids)]
        sharing.add(Request(str(number), 0, Prompt(spans), 1, -number - 1), 1)
    sizes = [1, 2, 5, 10, 30, 100, 500]
    rates = hit_rates(*sharing.reuse_distances(), sharing.num_blocks(), np.array(sizes))
    trace = recorded(tmp_path, requests)
    assert [replay(trace, {"name": "lru"}, size).blocks / trace.num_uses for size in sizes] == pytest.approx(
        list(rates)
    )


def test_belady_is_the_best_that_any_choice_can_do(tmp_path: Path) -> None:
    for seed in range(40):
        random = Random(seed)
        requests = random_requests(random, 6, 3)
        trace = recorded(tmp_path / str(seed), requests)
        for num_blocks in (1, 2, 3):
            assert replay(trace, {"name": BELADY}, num_blocks).blocks == most_hits(requests, num_blocks)


def test_no_policy_finds_more_than_belady_at_any_size(tmp_path: Path) -> None:
    for seed in range(4):
        requests = random_requests(Random(seed), 150, 9)
        trace = recorded(tmp_path / str(seed), requests)
        for size in (*range(1, 10, 2), 20, 50, 100, trace.num_nodes):
            bound = replay(trace, {"name": BELADY}, size).blocks
            assert all(replay(trace, {"name": name}, size).blocks <= bound for name in NAMES)
        assert bound == trace.found_blocks


def test_next_uses_are_those_of_the_same_block(tmp_path: Path) -> None:
    never = 2**31 - 1
    trace = recorded(tmp_path, [[1, 2], [], [1], [3], [1, 2]])
    assert trace.next_uses().tolist() == [3, 5, 5, never, never, never]


def test_shares_are_of_blocks_of_tokens_and_of_requests(tmp_path: Path) -> None:
    rows = [(30, [1, 2]), (16, [1]), (45, [1, 2, 3]), (5, [9])]
    study = CacheStudy(Source(write_jsonl(tmp_path, rows)), print, print)
    with study:
        report = study.run(parse_evictions("lru"), [100], jobs=1)
    assert {key: report[key] for key in ("num_requests", "block_tokens", "num_blocks", "num_distinct_blocks")} == {
        "num_requests": 4, "block_tokens": 16, "num_blocks": 7, "num_distinct_blocks": 4
    }  # fmt: skip
    shares = {"block_hit_rate": 3 / 7, "token_hit_rate": (16 + 32) / 96}
    assert report["unlimited"] == shares
    mean = {"request_hit_rate": (1 + 2 / 3) / 4}
    assert report["points"] == [{"eviction": name, "blocks": 100} | shares | mean for name in ("lru", BELADY)]


def write_jsonl(folder: Path, rows: list[tuple[int, list[int]]]) -> Path:
    path = folder / "trace.jsonl"
    lines = [{"timestamp": 0, "input_length": n, "output_length": 1, "hash_ids": ids} for n, ids in rows]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


PUBLISHED: dict[str, dict[str, dict[int, float]]] = {
    "conversation": {
        "lru": {1000: 0.0445, 10_000: 0.2116},
        "lfu": {10_000: 0.132, 50_000: 0.344},
        "length_aware": {10_000: 0.112},
    },
    "synthetic": {
        "lru": {1000: 0.0841, 5859: 0.3094, 10_000: 0.4239, 30_000: 0.6242, 50_000: 0.6396},
        "lfu": {1000: 0.042, 5859: 0.243, 10_000: 0.359, 30_000: 0.626, 50_000: 0.640},
    },
}
"""Block hit rates of the Mooncake traces (`DATA.md` beside them)."""


@pytest.mark.parametrize(("name", "unlimited"), [("conversation", 0.366), ("synthetic", 0.640)])
def test_the_mooncake_traces_hit_as_published(name: str, unlimited: float) -> None:
    path = shared("traces", "mooncake", f"{name}_trace.jsonl.gz")
    with CacheStudy(Source(path), print, lambda count: None) as study:
        assert study.trace.block_tokens == 512
        assert study.trace.found_blocks / study.trace.num_uses == pytest.approx(unlimited, abs=0.001)
        bounds = {}
        for eviction, rates in PUBLISHED[name].items():
            for size, rate in rates.items():
                got = replay(study.trace, {"name": eviction}, size).blocks
                assert got / study.trace.num_uses == pytest.approx(rate, abs=0.001)
                bound = bounds.setdefault(size, replay(study.trace, {"name": BELADY}, size).blocks)
                assert bound >= got


@pytest.mark.parametrize(("text", "sizes"), [("5", [5]), ("1000, 10,10", [10, 1000]), ("1_000", [1000])])
def test_sizes_are_numbers_and_rise(text: str, sizes: list[int]) -> None:
    assert parse_blocks(text) == sizes


def test_policies_are_named_with_their_parameters() -> None:
    evictions = parse_evictions("lru, {name: slru, threshold: 3}, belady, lru")
    assert evictions == {
        "lru": {"name": "lru"},
        "slru threshold=3": {"name": "slru", "threshold": 3},
        "belady": {"name": "belady"},
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("lur", "'lur' is unknown; choose belady, cost_aware, "),
        ("lru,3", "3 is unknown"),
        ("", "'' is not a list of policies"),
        ("lru,{", "'lru,{' is not a list of policies"),
        ("{name: slru, threshold: 0}", "slru.threshold: 0 is out of range"),
        ("{name: lru, threshold: 1}", "lru.threshold: lru has no such parameter"),
        ("{name: belady, x: 1}", "belady takes no parameters"),
    ],
)
def test_a_wrong_policy_is_told(text: str, says: str) -> None:
    with pytest.raises(ScenarioError, match="--eviction") as caught:
        parse_evictions(text)
    assert says in str(caught.value)


def test_a_scenario_s_prompts_are_cut_into_blocks(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    workload = "{type: independent, requests: 3, prompt_tokens: 40, output_tokens: 5}"
    path.write_text(f"name: s\nmodel: tiny\nhardware: {{gpu: h100-sxm}}\nworkload: {workload}\n", encoding="utf-8")
    with CacheStudy(Source(path), print, print) as study:
        assert (study.trace.block_tokens, study.trace.num_uses, study.trace.num_tokens) == (16, 9, 120)
        assert study.default_blocks() == [1, 2, 4, 9]
    with CacheStudy(Source(path, 7), print, print) as study:
        assert (study.trace.block_tokens, study.trace.num_uses) == (7, 18)


def test_requests_that_follow_are_told_of_and_keys_may_be_set(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    workload = "{type: multi_turn, sessions: 2, turns: 3, user_tokens: 20, output_tokens: 5}"
    path.write_text(f"name: s\nmodel: tiny\nhardware: {{gpu: h100-sxm}}\nworkload: {workload}\n", encoding="utf-8")
    told: list[str] = []
    with CacheStudy(Source(path, overrides=["workload.sessions=4"]), told.append, print) as study:
        assert study.trace.num_requests == 12
    assert told == [f"{path}: 8 requests follow from the end of others, sooner than in a run: service takes no time"]


def test_a_trace_has_no_keys(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"--set: .*trace\.jsonl is a trace; only a scenario has keys"):
        CacheStudy(Source(write_jsonl(tmp_path, [(5, [1])]), overrides=["workload.rate=1"]), print, print)


def test_a_shared_prefix_is_shared_whatever_the_block(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    workload = (
        "{type: generated_shared_prefix, num_groups: 2, prompts_per_group: 3, system_prompt_len: 64, question_len: 10}"
    )
    path.write_text(f"name: s\nmodel: tiny\nhardware: {{gpu: h100-sxm}}\nworkload: {workload}\n", encoding="utf-8")
    for size, shared_blocks in ((16, 4), (64, 1), (60, 1), (65, 0)):
        with CacheStudy(Source(path, size), print, print) as study:
            assert study.trace.found_blocks == 4 * shared_blocks
            assert study.trace.found_tokens == 4 * shared_blocks * size


@pytest.mark.parametrize(
    ("rows", "size"),
    [([(6758, list(range(14)))], 512), ([(5, [1]), (16, [1]), (17, [1, 2])], 16)],
)
def test_the_block_size_is_found_out(rows: list[tuple[int, list[int]]], size: int, tmp_path: Path) -> None:
    with CacheStudy(Source(write_jsonl(tmp_path, rows)), print, print) as study:
        assert study.trace.block_tokens == size


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([(5, [1])], "blocks may be of 8, 16, 32, 64, 128,"),
        ([(100, [1, 2, 3])], "line 1: hash_ids: no power of two makes 3 blocks of 100 tokens as of the rows before"),
        ([(0, [])], "blocks may be of 1, 2, 4"),
    ],
)
def test_a_block_size_that_cannot_be_found_out_is_asked_for(
    rows: list[tuple[int, list[int]]], says: str, tmp_path: Path
) -> None:
    with pytest.raises(ScenarioError, match="give --block-size") as caught:
        CacheStudy(Source(write_jsonl(tmp_path, rows)), print, print)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the trace is empty"),
        ("TIMESTAMP,ContextTokens\n1,2\n", "line 1: is not JSON"),
        ('{"timestamp": 0, "input_length": 5, "output_length": 5}\n', "line 1: hash_ids: is missing"),
        ('{"timestamp": 0, "input_length": 5, "output_length": 5, "hash_ids": 3}\n', "hash_ids: must be a list"),
    ],
)
def test_a_trace_without_block_ids_is_refused(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ScenarioError) as caught:
        CacheStudy(Source(path), print, print)
    assert says in str(caught.value)


def test_a_trace_without_prompts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="no request has a prompt"):
        CacheStudy(Source(write_jsonl(tmp_path, [(0, [])]), 16), print, print)


def test_rows_that_go_back_in_time_are_told_of(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    row: dict[str, Any] = {"input_length": 20, "output_length": 1, "hash_ids": [1, 2]}
    path.write_text("".join(json.dumps(row | {"timestamp": t}) + "\n" for t in (5, 3, 6)), encoding="utf-8")
    told: list[str] = []
    with CacheStudy(Source(path, 16), told.append, print) as study:
        assert study.trace.found_blocks == 4
    assert told == [f"{path}: 1 of 3 rows go back in time; taken in the file's order"]


def test_points_may_be_replayed_by_several_processes(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path, [(48, [i % 5, 10 + i % 3, 20 + i % 7]) for i in range(60)])
    told: list[int] = []
    with CacheStudy(Source(path, 16), print, print) as study:
        folder = study.trace.folder
        one, two = (study.run(parse_evictions("lru,lfu"), [2, 9], jobs, lambda: told.append(1)) for jobs in (1, 2))
    assert one == two
    assert len(told) == 12
    assert not folder.exists()
