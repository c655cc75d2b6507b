"""What the YAML leaves out is what vLLM would choose, and what vLLM refuses is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmsim.scenarios.engine_defaults import ResolvedEngine, resolve, resolve_engine
from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.loading import load_scenario
from llmsim.scenarios.preset_policies import resolve_policies
from llmsim.scenarios.schema_engine import Engine
from llmsim.tests.support.scenario_files import write_scenario

GIB = 2**30


def on_h100(**keys: object) -> ResolvedEngine:
    return resolve_engine(Engine.model_validate(keys), "h100-sxm", 79 * GIB, 131_072)


@pytest.mark.parametrize(
    ("gpu", "gib", "tokens", "seqs"),
    [
        ("b200", 180, 16384, 1024),
        ("h200-sxm", 139, 8192, 1024),
        ("h100-sxm", 79, 8192, 1024),
        ("a100-80g", 79, 2048, 256),
        ("rtx-4090", 24, 2048, 256),
    ],
)
def test_step_limits_follow_the_gpus_memory(gpu: str, gib: int, tokens: int, seqs: int) -> None:
    engine = resolve_engine(Engine(), gpu, gib * GIB, 131_072)
    assert (engine.max_num_batched_tokens, engine.max_num_seqs) == (tokens, seqs)


def test_defaults_are_those_of_vllm() -> None:
    engine = on_h100()
    assert engine == ResolvedEngine(
        preset="vllm@0.33",
        max_num_batched_tokens=8192,
        max_num_seqs=1024,
        max_model_len=131_072,
        block_size=16,
        gpu_memory_utilization=0.92,
        num_gpu_blocks_override=None,
        dtype="auto",
        quantization=None,
        kv_cache_dtype="auto",
        enable_prefix_caching=True,
        enable_chunked_prefill=True,
        async_scheduling=True,
        scheduler_reserve_full_isl=True,
        watermark=0.0,
        long_prefill_token_threshold=0,
        scheduling_policy="fcfs",
    )


def test_what_is_given_is_kept_even_where_it_is_zero_or_false() -> None:
    engine = on_h100(enable_prefix_caching=False, async_scheduling=False, watermark=0, preset="vllm@0.33")
    assert not engine.enable_prefix_caching
    assert not engine.async_scheduling


def test_default_number_of_requests_gives_way_to_a_smaller_step() -> None:
    assert on_h100(max_num_batched_tokens=512).max_num_seqs == 512


def test_default_step_is_no_longer_than_all_requests_together() -> None:
    assert on_h100(max_num_seqs=1, max_model_len=1000).max_num_batched_tokens == 1000


def test_default_step_holds_a_whole_prompt_without_chunked_prefill() -> None:
    assert on_h100(enable_chunked_prefill=False).max_num_batched_tokens == 131_072


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        (
            {"max_num_batched_tokens": 32, "max_num_seqs": 64},
            "engine.max_num_batched_tokens: 32 is out of range: must be at least max_num_seqs, 64",
        ),
        (
            {"max_model_len": 131_073},
            "engine.max_model_len: 131073 is out of range: the model reaches 131072",
        ),
        (
            {"enable_chunked_prefill": False, "max_num_batched_tokens": 8192},
            "engine.max_num_batched_tokens: 8192 is out of range: "
            "without chunked prefill at least max_model_len, 131072",
        ),
    ],
)
def test_what_vllm_refuses_is_an_error(keys: dict[str, object], says: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        on_h100(**keys)
    assert str(caught.value) == says


def test_chunk_above_the_steps_tokens_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    path = write_scenario(tmp_path)
    chunk = "policies.chunk_size={name: fixed, tokens: 8193}"
    scenario = load_scenario(path, [chunk])
    with pytest.raises(ScenarioError) as caught:
        resolve(scenario, 79 * GIB, 131_072)
    says = "policies.chunk_size.tokens: 8193 is out of range: at most engine.max_num_batched_tokens, 8192"
    assert str(caught.value) == f"{path}: {says}"
    resolve(load_scenario(path, [chunk, "engine.max_num_batched_tokens=8193"]), 79 * GIB, 131_072)


def policies_with(folder: Path, *overrides: str) -> dict[str, dict[str, object]]:
    return resolve_policies(load_scenario(write_scenario(folder), overrides))


def test_preset_fills_in_all_kinds_of_policy(tmp_path: Path) -> None:
    assert policies_with(tmp_path) == {
        "scheduling": {"name": "fcfs"},
        "chunk_size": {"name": "unlimited"},
        "eviction": {"name": "lru"},
        "preemption": {"name": "newest"},
        "batching": {"name": "unified"},
    }


@pytest.mark.parametrize("override", ["engine.scheduling_policy=priority", "policies.scheduling.name=priority"])
def test_priority_brings_its_own_victim(tmp_path: Path, override: str) -> None:
    policies = policies_with(tmp_path, override)
    assert policies["scheduling"] == {"name": "priority"}
    assert policies["preemption"] == {"name": "least_urgent"}
    scenario = load_scenario(write_scenario(tmp_path), [override])
    assert resolve(scenario, 79 * GIB, 131_072).scheduling_policy == "priority"


def test_a_victim_that_is_given_is_kept_under_priority(tmp_path: Path) -> None:
    overrides = ("engine.scheduling_policy=priority", "policies.preemption.name=newest")
    assert policies_with(tmp_path, *overrides)["preemption"] == {"name": "newest"}


def test_threshold_of_the_engine_is_a_chunk_size(tmp_path: Path) -> None:
    policies = policies_with(tmp_path, "engine.long_prefill_token_threshold=256")
    assert policies["chunk_size"] == {"name": "threshold", "tokens": 256}


@pytest.mark.parametrize(
    ("overrides", "where"),
    [
        (
            ["engine.scheduling_policy=priority", "policies.scheduling.name=fcfs"],
            "policies.scheduling.name: 'fcfs' differs from engine.scheduling_policy 'priority'",
        ),
        (
            ["engine.long_prefill_token_threshold=256", "policies.chunk_size={name: fixed, tokens: 256}"],
            "policies.chunk_size.name: 'fixed' differs from engine.long_prefill_token_threshold 256",
        ),
    ],
)
def test_engine_key_and_policy_that_differ_are_an_error(tmp_path: Path, overrides: list[str], where: str) -> None:
    with pytest.raises(ScenarioError, match=where):
        load_scenario(write_scenario(tmp_path), overrides)


def test_engine_key_and_policy_may_say_the_same(tmp_path: Path) -> None:
    overrides = ("engine.scheduling_policy=priority", "policies.scheduling.name=priority")
    assert policies_with(tmp_path, *overrides)["scheduling"] == {"name": "priority"}
