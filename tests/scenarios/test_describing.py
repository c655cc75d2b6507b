"""A description holds the numbers and the policies that a run will have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llmsim.policies import registry
from llmsim.scenarios.assembly import assemble
from llmsim.scenarios.describing import PRESETS, QUESTIONS, describe
from llmsim.scenarios.loading import load_scenario
from llmsim.scenarios.policy_words import policy_words
from llmsim.scenarios.schema import json_schema
from llmsim.tests.policies import example_policy
from llmsim.tests.support.command_line import llmsim
from llmsim.tests.support.scenario_files import BUSY, write_scenario
from llmsim.tests.support.tree import ROOT

Capture = pytest.CaptureFixture[str]


def described(folder: Path, *overrides: str) -> dict[str, Any]:
    return describe(assemble(load_scenario(write_scenario(folder, BUSY), overrides)))


def answer(folder: Path, question: str, *overrides: str) -> str:
    return " ".join(described(folder, *overrides)["answers"][question]["sentences"])


FLIPS = [
    ("batch", "engine.max_num_seqs=32", "of at most 48 requests", "of at most 32 requests"),
    ("batch", "engine.max_num_batched_tokens=1024", "at most 512 tokens", "at most 1,024 tokens"),
    ("batch", "engine.async_scheduling=false", "planned while the one before it runs", "GPU times add up"),
    (
        "batch",
        "policies.batching.name=static",
        "batching unified: ",
        "batching static, not what vllm@0.33 does: Nobody",
    ),
    ("prefill", "policies.chunk_size.tokens=256", "At most 192 prefill tokens", "At most 256 prefill tokens"),
    (
        "prefill",
        "policies.chunk_size={name: unlimited}",
        "fixed (tokens 192), not what",
        "chunk_size unlimited: No limit",
    ),
    ("cache", "engine.num_gpu_blocks_override=301", "399 blocks of 16 tokens, a pinned", "300 blocks of 16 tokens"),
    ("cache", "engine.num_gpu_blocks_override=null", "a pinned number", "what 0.92 (gpu_memory_utilization) of"),
    ("cache", "engine.block_size=32", "of 16 tokens", "of 32 tokens"),
    ("cache", "engine.enable_prefix_caching=false", "eviction lru: ", "Nothing is found again"),
    ("cache", "engine.kv_reservation=contiguous", "eviction lru: ", "one range of blocks for its prompt and all of"),
    ("pressure", "engine.kv_reservation=contiguous", "preemption newest: ", "a hole for its whole range are free"),
    ("pressure", "engine.scheduling_policy=priority", "preemption newest: ", "preemption least_urgent: The greatest"),
    ("pressure", "engine.scheduler_reserve_full_isl=false", "its whole prompt", "what a step computes of it"),
    ("pressure", "engine.watermark=0.05", "or all blocks", "20 blocks are left to them (watermark 0.05)"),
    ("pressure", "engine.max_model_len=2048", "(max_model_len)", "exceed 2,048 tokens (max_model_len)"),
    ("traffic", "workload.rate=20", "150 requests a second", "20 requests a second"),
    (
        "traffic",
        "workload.rate={ramp: {from: 1, to: 9, over_s: 60}}",
        "(Poisson)",
        "1 to 9 requests a second within 60 s",
    ),
    ("traffic", "workload.arrivals=constant", "at random (Poisson)", "evenly spaced"),
    ("traffic", "workload.requests=7", "400 requests in all", "7 requests in all"),
    ("traffic", "workload.duration_s=3", "in all", "400 requests or 3 s, whichever is over first"),
    ("traffic", "workload.max_concurrency=8", "150 requests", "never more than 8 at once"),
    ("traffic", "workload.max_concurrency=9", "150 requests", "That is a closed loop"),
    ("traffic", "workload.max_tokens={fixed: 64}", "as many tokens as", "asks for 64 tokens"),
    ("traffic", "workload.timeout_s=2.5", "max_tokens: exact", "not whole after 2.5 s, and goes away"),
    ("traffic", "workload.question_tokens={uniform: {min: 5, max: 9}}", "mean 80, cv 1", "uniform (min 5, max 9)"),
    ("traffic", "run.warmup_s=1.5", "Everything is measured", "in the first 1.5 s is not measured"),
    ("traffic", "run.seed=5", "the seed is 0", "the seed is 5"),
    ("traffic", "slo={ttft_s: 1}", "TTFT 0.05 s, TPOT 0.0014 s, E2E 0.4 s", "stay within TTFT 1 s."),
    ("traffic", "slo={}", "TTFT 0.05 s", "No SLO is set"),
    ("traffic", "frontend.network_s=0.02", "the seed is 0", "0.02 s (network_s)"),
]


@pytest.mark.parametrize(("question", "override", "before", "after"), FLIPS)
def test_another_value_is_another_sentence(
    tmp_path: Path, question: str, override: str, before: str, after: str
) -> None:
    assert before in answer(tmp_path, question)
    assert after not in answer(tmp_path, question)
    assert after in answer(tmp_path, question, override)


def test_chunked_prefill_and_its_absence(tmp_path: Path) -> None:
    whole = ["engine.enable_chunked_prefill=false", "policies.chunk_size={name: unlimited}", "engine.max_model_len=512"]
    assert "is cut" in answer(tmp_path, "prefill")
    assert "one of more than 512 tokens is refused" in answer(tmp_path, "prefill", *whole)


@pytest.mark.parametrize(("chunk", "says"), [(512, "or both at once"), (-1, "enable_mixed_chunk does nothing")])
def test_sglang_mixes_where_it_chunks(tmp_path: Path, chunk: int, says: str) -> None:
    keys = {"engine.preset": "sglang", "engine.enable_mixed_chunk": True, "engine.chunked_prefill_size": chunk}
    scenario = load_scenario(write_scenario(tmp_path), keys)
    assert says in " ".join(describe(assemble(scenario))["answers"]["batch"]["sentences"])


def test_a_policy_of_ones_own_describes_itself(tmp_path: Path) -> None:
    assert example_policy.ShortestPrompt
    scheduling = "policies.scheduling={name: shortest_prompt, patience_s: 5}"
    says = answer(tmp_path, "pressure", scheduling)
    assert "scheduling shortest_prompt (patience_s 5), not what vllm@0.33 does: The shortest prompt first" in says
    assert "has waited longer than 5 s goes ahead" in says
    assert "longer than 10 s" in answer(tmp_path, "pressure", "policies.scheduling={name: shortest_prompt}")


@pytest.mark.parametrize("kind", registry.KINDS)
def test_every_policy_has_a_sentence(kind: str) -> None:
    for name in registry.policies(kind):
        assert len(policy_words(kind, {"name": name})) > 10, name


def test_every_preset_that_can_be_run_has_words(tmp_path: Path) -> None:
    sections = [section.get("properties", {}) for section in json_schema()["$defs"].values()]
    names = [name for section in sections for name in section.get("preset", {}).get("enum", ())]
    assert {"vllm", "sglang"} <= set(names)
    for name in names:
        assembly = assemble(load_scenario(write_scenario(tmp_path), {"engine.preset": name}))
        assert describe(assembly)["preset"].partition("@")[0] in PRESETS


def test_the_command_says_what_its_json_holds(tmp_path: Path, capsys: Capture) -> None:
    done = llmsim(capsys, "describe", write_scenario(tmp_path, BUSY), "--json")
    assert done.code == 0
    printed, found = " ".join(done.err.split()), done.json()
    assert "busy: tiny on a100-80g, vllm@0.33" in printed
    assert set(found["answers"]) == set(QUESTIONS)
    for one in found["answers"].values():
        assert one["question"] in printed
        assert all(" ".join(sentence.split()) in printed for sentence in one["sentences"])
    assert "KV blocks 400" in printed
    assert found["memory"]["num_blocks"] == 400
    assert [kind for kind, policy in found["policies"].items() if not policy["is_the_presets_own"]] == ["chunk_size"]
    assert llmsim(capsys, "describe", write_scenario(tmp_path, BUSY)).out == ""


@pytest.mark.parametrize("path", sorted((ROOT / "scenarios").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_scenario_can_be_described(path: Path) -> None:
    description = describe(assemble(load_scenario(path)))
    json.dumps(description, allow_nan=False)
    sentences = [sentence for one in description["answers"].values() for sentence in one["sentences"]]
    assert all(sentence[-1] in ".)" and "None" not in sentence and "{" not in sentence for sentence in sentences)


def test_a_mistake_is_one_line(tmp_path: Path, capsys: Capture) -> None:
    done = llmsim(capsys, "describe", write_scenario(tmp_path, BUSY), "--set", "engine.max_num_seq=3")
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    assert "did you mean 'max_num_seqs'" in done.err
