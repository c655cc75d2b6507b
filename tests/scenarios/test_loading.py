"""A scenario loads with its defaults, and whatever is wrong with it is one clear line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from llmsim.policies.core import specs
from llmsim.scenarios.engine_defaults import resolve
from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.loading import load_scenario, resolved, scenario_from
from llmsim.scenarios.schema import json_schema
from llmsim.scenarios.schema_engine import presets
from llmsim.scenarios.schema_sglang import SglangEngine
from llmsim.scenarios.schema_vllm import VllmEngine
from llmsim.scenarios.schema_workload import workload_types
from llmsim.tests.support.scenario_files import MINIMAL, write_scenario

TYPES = ", ".join(workload_types())
SHIPPED = sorted((Path(__file__).parents[2] / "scenarios").glob("*.yaml"))
MODELS, GPUS = ", ".join(specs.model_names()), ", ".join(specs.gpu_names())
H100_BYTES = int(79.6 * 2**30)
TRACE = "workload={type: trace, path: x, format: "


def complaint(folder: Path, *overrides: str) -> str:
    """What is said of the small scenario with these overrides, the file's name left out."""
    path = write_scenario(folder)
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path, overrides)
    text = str(caught.value)
    assert "\n" not in text
    return text.removeprefix(f"{path}: ").removesuffix(" (given by --set)")


def test_four_keys_make_a_scenario(tmp_path: Path) -> None:
    scenario = load_scenario(write_scenario(tmp_path))
    assert scenario.hardware.tensor_parallel == 1
    assert scenario.run.seed == 0
    assert scenario.slo.ttft_s is None


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_scenarios_load_and_are_named_after_their_file(path: Path) -> None:
    scenario = load_scenario(path)
    assert scenario.name == path.stem
    resolve(scenario, H100_BYTES, 131_072)


def test_there_are_shipped_scenarios() -> None:
    names = {path.stem for path in SHIPPED}
    assert names >= {"agent", "azure-conversation", "md1", "mooncake-conversation"}
    assert names >= {"burst", "chat", "closed-loop", "few-shot", "mixture", "rag", "shared-prefix", "timeouts"}


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("engine.max_num_seqs=0", "engine.max_num_seqs: 0 is out of range: must be at least 1"),
        ("engine.max_num_seqs=1.5", "engine.max_num_seqs: must be a whole number, not 1.5"),
        ("engine.max_num_seqs=true", "engine.max_num_seqs: must be a whole number, not true"),
        ("engine.max_num_seqs='64'", "engine.max_num_seqs: must be a whole number, not '64'"),
        ("engine.watermark=.nan", "engine.watermark: must be a finite number, not nan"),
        ("engine.watermark=1", "engine.watermark: 1 is out of range: must be below 1.0"),
        ("engine.watermark=-0.1", "engine.watermark: -0.1 is out of range: must be at least 0.0"),
        (
            "engine.num_gpu_blocks_override=1",
            "engine.num_gpu_blocks_override: 1 is out of range: must be at least 2",
        ),
        (
            "engine.gpu_memory_utilization=1.1",
            "engine.gpu_memory_utilization: 1.1 is out of range: must be at most 1.0",
        ),
        (
            "engine.enable_prefix_caching=off",
            "engine.enable_prefix_caching: must be true or false, not 'off'",
        ),
        (
            "engine.preset=sglan",
            "engine.preset: 'sglan' is unknown; did you mean 'sglang'? choose sglang, sglang@0.5.23, vllm, vllm@0.33",
        ),
        ("engine.preset=[3]", f"engine.preset: [3] is unknown; choose {', '.join(presets())}"),
        ("engine.preset=", f"engine.preset: null (nothing) is unknown; choose {', '.join(presets())}"),
        ("engine=", "engine: must be a mapping of keys, not null (nothing)"),
        ("hardware={}", "hardware.gpu: is required"),
        ("hardware.tensor_parallel=0", "hardware.tensor_parallel: 0 is out of range: must be at least 1"),
        ("hardware.gpu=voodoo2", f"hardware.gpu: 'voodoo2' is unknown; choose {GPUS}"),
        ("model=tiney", f"model: 'tiney' is unknown; did you mean 'tiny'? choose {MODELS}"),
        (
            "name=a/b",
            "name: 'a/b' must be letters, digits, '.', '_' and '-', and begin with a letter or digit",
        ),
        ("run.seed=-1", "run.seed: -1 is out of range: must be at least 0"),
        ("run.cache=hot", "run.cache: 'hot' is unknown; choose cold, warm"),
        ("run.warmup_s=.inf", "run.warmup_s: must be a finite number, not inf"),
        ("slo.ttft_s=0", "slo.ttft_s: 0 is out of range: must be above 0.0"),
        ("frontend.network_s=-1", "frontend.network_s: -1 is out of range: must be at least 0.0"),
        ("policies.eviction=lru", "policies.eviction: must be a mapping of keys, not 'lru'"),
        ("policies.eviction={}", "policies.eviction.name: is required"),
        (
            "policies.eviction={name: lur}",
            "policies.eviction.name: 'lur' is unknown; choose "
            "cost_aware, fifo, filo, length_aware, lfu, lru, mru, priority, random, slru",
        ),
        ("policies.chunk_size={name: fixed}", "policies.chunk_size.tokens: is missing; fixed needs it"),
        (
            "policies.chunk_size={name: fixed, tokens: .nan}",
            "policies.chunk_size.tokens: must be a finite number, not nan",
        ),
        ("workload={}", f"workload.type: is required; choose {TYPES}"),
        (
            "workload.type=agnt",
            f"workload.type: 'agnt' is unknown; did you mean 'agent'? choose {TYPES}",
        ),
        ("workload.rate=fast", "workload.rate: must be a number, not 'fast'"),
        ("workload.rate=0", "workload.rate: 0 is out of range: must be at least 1e-06"),
        ("workload.rate=.nan", "workload.rate: must be a finite number, not nan"),
        ("workload.requests=0", "workload.requests: 0 is out of range: must be at least 1"),
        ("workload.prompt_tokens=0", "workload.prompt_tokens: 0 is out of range: must be at least 1"),
        ("workload.output_tokens=0", "workload.output_tokens: 0 is out of range: must be at least 1"),
        ("workload.output_tokens=many", "workload.output_tokens: must be a whole number, not 'many'"),
        ("workload.output_tokens={}", "workload.output_tokens.lognormal: is required"),
        (
            "workload.output_tokens={lognormal: {mean: 0, cv: 1}}",
            "workload.output_tokens.lognormal.mean: 0 is out of range: must be at least 1.0",
        ),
        (
            "workload.output_tokens={lognormal: {mean: 100, cv: 1, max: 50}}",
            "workload.output_tokens.lognormal: max 50 is below the mean 100",
        ),
        (
            "workload.max_tokens={fixed: 0}",
            "workload.max_tokens.fixed: 0 is out of range: must be at least 1",
        ),
        (
            "workload.max_tokens={factor: 0.5}",
            "workload.max_tokens.factor: 0.5 is out of range: must be at least 1.0",
        ),
        (
            TRACE + "azur}",
            "workload.format: 'azur' is unknown; did you mean 'azure'? choose azure, bailian, burstgpt, custom, "
            "hash_ids, mooncake, sharegpt, weka",
        ),
        (TRACE + "azure, limit: 0}", "workload.limit: 0 is out of range: must be at least 1"),
        (TRACE + "azure, time_scale: 0}", "workload.time_scale: 0 is out of range: must be at least 1e-06"),
        (
            TRACE + "azure, block_tokens: 4}",
            "workload: block_tokens goes with format: hash_ids only; azure sets its own",
        ),
    ],
)
def test_bad_value_is_one_line_with_key_value_and_what_would_be_right(tmp_path: Path, override: str, says: str) -> None:
    assert complaint(tmp_path, override) == says


@pytest.mark.parametrize(
    ("override", "key", "near"),
    [
        ("engin.max_num_seqs=1", "engin", "engine"),
        ("engine.max_num_seq=1", "engine.max_num_seq", "max_num_seqs"),
        ("workload.rates=1", "workload.rates", "rate"),
        ("slo.tfft_s=1", "slo.tfft_s", "ttft_s"),
        ("policies.evicton.name=lru", "policies.evicton", "eviction"),
        ("workload.max_tokens={fixd: 3}", "workload.max_tokens.fixd", "fixed"),
    ],
)
def test_unknown_key_names_the_choices_and_the_likely_one(tmp_path: Path, override: str, key: str, near: str) -> None:
    text = complaint(tmp_path, override)
    assert text.startswith(f"{key}: unknown key; did you mean '{near}'? choose ")
    assert near in text.split("choose ")[1].split(", ")


def test_key_of_the_other_engine_names_its_twin(tmp_path: Path) -> None:
    says = "engine.chunked_prefill_size: is a key of SGLang; the vllm preset calls it max_num_batched_tokens"
    assert complaint(tmp_path, "engine.chunked_prefill_size=512") == says
    for key in SglangEngine.model_fields.keys() - VllmEngine.model_fields.keys():
        assert complaint(tmp_path, f"engine.{key}=1").startswith(f"engine.{key}: is a key of SGLang; ")


def test_key_of_vllm_names_its_twin_in_sglang(tmp_path: Path) -> None:
    says = "engine.max_num_seqs: is a key of vLLM; the sglang preset calls it max_running_requests"
    assert complaint(tmp_path, "engine.preset=sglang", "engine.max_num_seqs=512") == says
    for key in VllmEngine.model_fields.keys() - SglangEngine.model_fields.keys():
        text = complaint(tmp_path, "engine.preset=sglang@0.5.23", f"engine.{key}=1")
        assert text.startswith((f"engine.{key}: is a key of vLLM; ", f"engine.{key}: is a key of the vllm preset; "))


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("chunked_prefill_size=0", "0 is out of range: must be at least 1, or -1 for prompts as a whole"),
        ("chunked_prefill_size=-2", "-2 is out of range: must be at least -1"),
        ("mem_fraction_static=0", "0 is out of range: must be above 0.0"),
        ("page_size=0", "0 is out of range: must be at least 1"),
        ("schedule_conservativeness=-1", "-1 is out of range: must be at least 0.0"),
        (
            "schedule_policy=lmp",
            "'lmp' is unknown; did you mean 'lpm'? choose dfs-weight, fcfs, hrrn, lof, lpm, random, "
            "shortest-prefill-first",
        ),
        ("radix_eviction_policy=arc", "'arc' is unknown; choose fifo, filo, lfu, lru, mru, priority, slru"),
        ("disable_radix_cache=1", "must be true or false, not 1"),
        ("kv_cache_dtype=fp8", "'fp8' is unknown; "),
    ],
)
def test_bad_value_of_sglang_is_one_line_too(tmp_path: Path, override: str, says: str) -> None:
    text = complaint(tmp_path, "engine.preset=sglang", f"engine.{override}")
    assert text.startswith(f"engine.{override.partition('=')[0]}: {says}")


@pytest.mark.parametrize("override", ["nonsense", "=3", "a..b=3", ".a=1"])
def test_override_without_a_path_is_an_error(tmp_path: Path, override: str) -> None:
    assert complaint(tmp_path, override).startswith(f"--set {override}: write --set key.path=value")


def test_override_into_a_value_is_an_error(tmp_path: Path) -> None:
    says = "model: holds 'tiny', not a mapping of keys, so --set model.x.y finds no place"
    assert complaint(tmp_path, "model.x.y=1") == says


def test_override_that_is_no_yaml_is_an_error(tmp_path: Path) -> None:
    assert complaint(tmp_path, "run.seed=[1").startswith("--set run.seed=[1: line 1: ")


def test_error_says_that_an_override_is_to_blame(tmp_path: Path) -> None:
    path = write_scenario(tmp_path)
    with pytest.raises(ScenarioError, match=r"\(given by --set\)$"):
        load_scenario(path, ["workload.output_tokens={lognormal: {mean: 0, cv: 1}}"])
    path = write_scenario(tmp_path, MINIMAL + "run: {seed: -1}\n")
    with pytest.raises(ScenarioError, match=r"at least 0$"):
        load_scenario(path, ["engine.max_num_seqs=3"])


def test_later_override_wins_and_missing_sections_are_made(tmp_path: Path) -> None:
    overrides = ["engine.max_num_seqs=3", "engine.max_num_seqs=4", "slo.e2e_s=1e1"]
    scenario = load_scenario(write_scenario(tmp_path), overrides)
    assert scenario.engine.max_num_seqs == 4
    assert scenario.slo.e2e_s == 10.0


def test_override_of_one_place_leaves_an_alias_of_it_alone(tmp_path: Path) -> None:
    lengths = "{lognormal: {mean: 10, cv: 1}}"
    path = write_scenario(
        tmp_path,
        "name: a\nmodel: tiny\nhardware: {gpu: h100-sxm}\n"
        f"workload: {{type: independent, prompt_tokens: &n {lengths}, output_tokens: *n}}\n",
    )
    workload = load_scenario(path, ["workload.output_tokens.lognormal.mean=99"]).workload.model_dump()
    assert workload["prompt_tokens"]["lognormal"]["mean"] == 10
    assert workload["output_tokens"]["lognormal"]["mean"] == 99


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_resolved_scenario_means_the_same_when_loaded_again(path: Path) -> None:
    scenario = load_scenario(path)
    engine = resolve(scenario, H100_BYTES, 131_072)
    whole = resolved(scenario, engine)
    text = yaml.safe_dump(whole, sort_keys=False)
    again = scenario_from(yaml.safe_load(text))
    assert resolve(again, 16 * 2**30, 131_072) == engine  # another GPU's defaults no longer matter
    assert resolved(again, engine) == whole


def test_json_schema_describes_every_section_and_forbids_unknown_keys() -> None:
    schema = json_schema()
    assert set(schema["required"]) == {"name", "model", "hardware", "workload"}
    assert schema["additionalProperties"] is False
    assert schema["$defs"]["VllmEngine"]["additionalProperties"] is False
    assert schema["$defs"]["SglangEngine"]["additionalProperties"] is False
    assert schema["$defs"]["PolicySpec"]["additionalProperties"] is True
    json.dumps(schema)
