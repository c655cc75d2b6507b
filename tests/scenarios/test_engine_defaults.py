"""Engine and policies of a run agree, whichever of them the YAML says and whichever preset it names."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmsim.scenarios.assembly import assemble
from llmsim.scenarios.engine_defaults import resolve
from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.loading import load_scenario, resolved, scenario_from
from llmsim.scenarios.preset_policies import departures, resolve_policies
from llmsim.scenarios.sglang_defaults import ResolvedSglang
from llmsim.scenarios.vllm_defaults import ResolvedVllm
from llmsim.tests.support.scenario_files import write_scenario

GIB = 2**30
SGLANG = "engine.preset=sglang"


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
    engine = resolve(scenario, 79 * GIB, 131_072)
    assert isinstance(engine, ResolvedVllm)
    assert engine.scheduling_policy == "priority"


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


def test_preset_of_sglang_fills_in_all_kinds_of_policy(tmp_path: Path) -> None:
    assert policies_with(tmp_path, SGLANG) == {
        "scheduling": {"name": "fcfs"},
        "chunk_size": {"name": "unlimited"},
        "eviction": {"name": "lru"},
        "preemption": {"name": "fewest_outputs"},
        "batching": {"name": "prefill_first"},
    }


def test_policies_that_sglangs_keys_name_are_no_departure_from_it(tmp_path: Path) -> None:
    keys = [SGLANG, "engine.schedule_policy=lpm", "engine.radix_eviction_policy=lfu"]
    scenario = load_scenario(write_scenario(tmp_path), keys)
    policies = resolve_policies(scenario)
    assert (policies["scheduling"], policies["eviction"]) == ({"name": "lpm"}, {"name": "lfu"})
    assert departures(scenario) == {}
    other = load_scenario(write_scenario(tmp_path), [SGLANG, "policies.batching.name=unified"])
    assert departures(other) == {"batching": {"name": "unified"}}


@pytest.mark.parametrize(
    ("kind", "name", "key", "asked"),
    [("scheduling", "fcfs", "schedule_policy", "lpm"), ("eviction", "lru", "radix_eviction_policy", "mru")],
)
def test_a_policy_and_sglangs_key_that_differ_are_an_error(
    tmp_path: Path, kind: str, name: str, key: str, asked: str
) -> None:
    keys = [SGLANG, f"engine.{key}={asked}", f"policies.{kind}.name={name}"]
    with pytest.raises(ScenarioError, match=f"'{name}' differs from engine.{key} '{asked}'; give one of them"):
        load_scenario(write_scenario(tmp_path), keys)


def test_a_policy_sets_sglangs_key(tmp_path: Path) -> None:
    scenario = load_scenario(write_scenario(tmp_path), [SGLANG, "policies.scheduling.name=priority"])
    engine = resolve(scenario, 79 * GIB, 131_072)
    assert isinstance(engine, ResolvedSglang)
    assert engine.schedule_policy == "fcfs"  # SGLang has no such name: priority scheduling is a switch


def test_resolved_sglang_means_the_same_when_loaded_again(tmp_path: Path) -> None:
    keys = [SGLANG, "engine.schedule_policy=hrrn", "engine.chunked_prefill_size=-1", "hardware.tensor_parallel=4"]
    scenario = load_scenario(write_scenario(tmp_path), keys)
    engine = resolve(scenario, 79 * GIB, 131_072)
    whole = resolved(scenario, engine)
    assert whole.pop("policies")["scheduling"] == {"name": "hrrn"}
    whole["engine"]["schedule_policy"] = "hrrn"
    assert resolve(scenario_from(whole), 16 * GIB, 131_072) == engine  # another GPU's defaults no longer matter


def test_an_order_that_sglang_refuses_is_an_error(tmp_path: Path) -> None:
    path = write_scenario(tmp_path)
    keys = [SGLANG, "engine.enable_priority_scheduling=true"]
    resolve(load_scenario(path, [*keys, "engine.schedule_policy=lof"]), 79 * GIB, 131_072)
    with pytest.raises(ScenarioError, match=r"enable_priority_scheduling: true goes with .* not 'lpm'"):
        resolve(load_scenario(path, [*keys, "engine.schedule_policy=lpm"]), 79 * GIB, 131_072)
    keys = [SGLANG, "engine.disable_radix_cache=true", "engine.schedule_policy=shortest-prefill-first"]
    with pytest.raises(ScenarioError, match=r"disable_radix_cache: true does not go with"):
        resolve(load_scenario(path, keys), 79 * GIB, 131_072)


def test_a_chunk_above_sglangs_or_below_a_page_is_an_error(tmp_path: Path) -> None:
    chunk = "policies.chunk_size={name: fixed, tokens: 8193}"
    path = write_scenario(tmp_path)
    with pytest.raises(ScenarioError, match=r"8193 is out of range: at most engine\.chunked_prefill_size, 8192"):
        resolve(load_scenario(path, [SGLANG, chunk]), 79 * GIB, 131_072)
    small = load_scenario(path, [SGLANG, "policies.chunk_size={name: fixed, tokens: 8}", "engine.page_size=16"])
    with pytest.raises(ScenarioError, match=r"8 is out of range: at least engine\.page_size, 16"):
        resolve(small, 79 * GIB, 131_072)


@pytest.mark.parametrize(
    "keys",
    [
        [SGLANG, "engine.chunked_prefill_size=-1"],
        ["engine.enable_chunked_prefill=false", "engine.max_model_len=4096", "engine.max_num_batched_tokens=4096"],
    ],
)
def test_a_chunk_where_prompts_are_computed_whole_is_an_error(tmp_path: Path, keys: list[str]) -> None:
    chunk = "policies.chunk_size={name: fixed, tokens: 512}"
    says = r"chunk_size\.name: 'fixed' requires prompts that may be computed in chunks"
    with pytest.raises(ScenarioError, match=says):
        assemble(load_scenario(write_scenario(tmp_path), [*keys, chunk]))
    assemble(load_scenario(write_scenario(tmp_path), keys))


def test_sglang_is_put_together(tmp_path: Path) -> None:
    path = write_scenario(tmp_path)
    with pytest.raises(ScenarioError, match="the model reaches"):
        assemble(load_scenario(path, [SGLANG, "engine.context_length=9999999"]))
    with pytest.raises(ScenarioError, match=r"batching\.name: 'unified' does not go with the sglang preset"):
        assemble(load_scenario(path, [SGLANG, "policies.batching.name=unified"]))
    assembly = assemble(load_scenario(path, [SGLANG, "engine.page_size=16", "engine.schedule_policy=lpm"]))
    assert assembly.config.prefix_index == "radix_tree"
    assert assembly.config.depth == 2
    assert assembly.config.num_blocks == assembly.budget.num_blocks + 1
    assert assembly.policies["scheduling"] == {"name": "lpm"}
    assert assembly.policies["batching"]["max_prefill_tokens"] == 16384


def test_contiguous_reservation_is_put_together(tmp_path: Path) -> None:
    path = write_scenario(tmp_path)
    key = "engine.kv_reservation=contiguous"
    config = assemble(load_scenario(path, [key, "policies.batching.name=static"])).config
    assert (config.kv_reservation, config.enable_prefix_caching) == ("contiguous", False)
    says = (
        r"batching\.name: 'prefill_first' counts pages of a radix tree, which engine\.kv_reservation 'contiguous' has"
    )
    with pytest.raises(ScenarioError, match=says):
        assemble(load_scenario(path, [key, "policies.batching.name=prefill_first"]))
