"""What each kind of flag does to the scenario, and what is said of those that do nothing."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmsim.policies.core import specs
from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.importing.calls import tables
from llmsim.scenarios.importing.flags import Carried, Switch
from llmsim.scenarios.importing.imported import Wishes, import_commands
from llmsim.scenarios.importing.model_names import known_model
from llmsim.scenarios.importing.values import whole
from llmsim.scenarios.loading import load_scenario
from llmsim.scenarios.schema_sglang import SglangEngine
from llmsim.scenarios.schema_vllm import VllmEngine
from llmsim.tests.support.imported import BENCH, LAUNCH, SERVE, SERVING, refusal, scenario_of


def engine_of(flags: str, server: str = SERVE) -> dict[str, Any]:
    engine: dict[str, Any] = scenario_of(f"{server} {flags}")["engine"]
    del engine["preset"]
    return engine


@pytest.mark.parametrize(
    ("flags", "engine"),
    [
        ("--max-num-seqs 64", {"max_num_seqs": 64}),
        ("--max_num_seqs=64", {"max_num_seqs": 64}),
        ("--max-model-len 8k --max-num-batched-tokens 8K", {"max_model_len": 8000, "max_num_batched_tokens": 8192}),
        ("--max-model-len auto", {}),
        ("--no-enable-prefix-caching", {"enable_prefix_caching": False}),
        ("--enable-prefix-caching", {"enable_prefix_caching": True}),
        ("--enable-chunked-prefill=False", {"enable_chunked_prefill": False}),
        (
            "--enable-chunked-prefill true --async-scheduling",
            {"enable_chunked_prefill": True, "async_scheduling": True},
        ),
        ("--dtype half -q awq_marlin", {"dtype": "float16", "quantization": "awq"}),
        ("--kv-cache-dtype fp8_e5m2", {"kv_cache_dtype": "fp8"}),
        ("--gpu-memory-util 0.95", {"gpu_memory_utilization": 0.95}),
        ("--max-num-seqs 1 --max-num-seqs 2", {"max_num_seqs": 2}),
    ],
)
def test_flags_of_vllm_are_read_in_all_their_spellings(flags: str, engine: dict[str, object]) -> None:
    assert engine_of(flags) == engine


@pytest.mark.parametrize(
    ("flags", "engine"),
    [
        ("--chunked-prefill-size -1 --max-total-tokens 20k", {"chunked_prefill_size": -1, "max_total_tokens": 20000}),
        ("--chunked-prefill-size 0", {"chunked_prefill_size": -1}),
        (
            "--schedule-policy lpm --radix-eviction-policy lfu",
            {"schedule_policy": "lpm", "radix_eviction_policy": "lfu"},
        ),
        ("--disable-radix-cache --enable-mixed-chunk", {"disable_radix_cache": True, "enable_mixed_chunk": True}),
        ("--kv-cache-dtype fp8_e4m3 --page-size 16", {"kv_cache_dtype": "fp8_e4m3", "page_size": 16}),
        ("--radix-eviction-policy tlru", {}),
    ],
)
def test_flags_of_sglang_are_read(flags: str, engine: dict[str, object]) -> None:
    assert engine_of(flags, LAUNCH) == engine


OWN_KEYS = {"engine.preset", "engine.kv_reservation", "engine.swap_space_gib"}
"""Keys that no engine has."""


def test_every_key_of_an_engine_has_its_flag() -> None:
    for program, kind in (("vllm serve", VllmEngine), ("sglang.launch_server", SglangEngine)):
        rules = tables()[program].values()
        paths = {rule.path for rule in rules if isinstance(rule, Carried | Switch)}
        assert {f"engine.{key}" for key in kind.model_fields} - paths <= OWN_KEYS


@pytest.mark.parametrize(
    ("flags", "note"),
    [
        ("--port 8000", "--port has no meaning here: where the server listens, and who may ask"),
        ("--api-key SECRET", "--api-key has no meaning here: where the server listens, and who may ask"),
        ("--pipeline-parallel-size 2", "--pipeline-parallel-size is not supported: one engine on tensor-parallel GPUs"),
        ("--max-num-sequences 3", "--max-num-sequences 3 is unknown here; did you mean --max-num-seqs?"),
        ("--frobnicate a b", "--frobnicate a b is unknown here"),
        ("--compilation-config.mode 3", "--compilation-config.mode is not supported: steps are priced as"),
        ("--dtype float32", "--dtype float32 is not supported: activations take 16 bits; known are"),
        ("--quantization bitsandbytes", "--quantization bitsandbytes is not supported; known are fp8, awq, gptq"),
        ("stray", "`stray` is no flag"),
        ("| tee log", "`tee log` is not carried over: it is no server or benchmark"),
    ],
)
def test_what_is_not_carried_over_is_named_with_the_reason(flags: str, note: str) -> None:
    imported = import_commands(f"{SERVE} {flags}", Wishes())
    assert len(imported.notes) == 1
    assert imported.notes[0].startswith(note)
    assert "SECRET" not in imported.text + str(imported.notes)


@pytest.mark.parametrize(
    "flags", ["--pipeline-parallel-size 1", "-dp 1", "--no-enable-expert-parallel", "--num-scheduler-steps=1"]
)
def test_a_flag_that_asks_for_what_is_so_anyway_is_no_loss(flags: str) -> None:
    assert import_commands(f"{SERVE} {flags}", Wishes()).notes == []


def test_server_and_benchmark_make_one_scenario_in_either_order() -> None:
    server, bench = "vllm serve Qwen/Qwen3-8B --max-num-seqs 8", "vllm bench serve --model alias --num-prompts 5"
    for text in (f"{server} & {bench}", f"{bench}\n{server}"):
        whole = scenario_of(text)
        assert (whole["model"], whole["engine"]["max_num_seqs"], whole["workload"]["requests"]) == ("qwen3-8b", 8, 5)


def test_a_benchmark_against_the_other_engine_measures_its_preset() -> None:
    assert scenario_of(f"{SERVING} --backend vllm-chat --dataset-name random")["engine"] == {"preset": "vllm"}
    assert scenario_of(f"{SERVING} --backend sglang --dataset-name random")["engine"] == {"preset": "sglang"}
    assert scenario_of(f"{SERVE}\n{SERVING} --dataset-name random")["engine"] == {"preset": "vllm"}


@pytest.mark.parametrize(
    "program",
    [
        "CUDA_VISIBLE_DEVICES=0 uv run vllm serve",
        "/opt/venv/bin/vllm serve",
        "python3.12 -u -m vllm.entrypoints.openai.api_server --model",
        "sglang serve",
        "sglang serve --model-path",
        "docker run lmsysorg/sglang:latest python3 -m sglang.launch_server --model-path",
        "docker run vllm/vllm-openai:v0.11.0 --model",
        "docker run --entrypoint sh vllm/vllm-openai vllm serve",
    ],
)
def test_a_server_is_found_however_it_is_started(program: str) -> None:
    assert scenario_of(f"{program} Qwen/Qwen3-8B")["model"] == "qwen3-8b"


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", ("llama-3.1-8b", None, None)),
        ("meta-llama/Meta-Llama-3.1-70B", ("llama-3.1-70b", None, None)),
        ("meta-llama/Llama-3.3-70B-Instruct", ("llama-3.1-70b", None, None)),
        ("meta-llama/Meta-Llama-3-8B-Instruct", ("llama-3.1-8b", None, 8192)),
        ("neuralmagic/Meta-Llama-3.1-8B-Instruct-FP8", ("llama-3.1-8b", "fp8", None)),
        ("hugging-quants/Meta-Llama-3.1-8B-Instruct-AWQ-INT4", ("llama-3.1-8b", "awq", None)),
        ("mistralai/Mistral-7B-Instruct-v0.3", ("mistral-7b", None, None)),
        ("google/gemma-2-9b-it", ("gemma-2-9b", None, None)),
        ("/models/Qwen3-0.6B/", ("qwen3-0.6b", None, None)),
        ("Qwen/Qwen3-30B-A3B", None),
        ("facebook/opt-125m", None),
    ],
)
def test_models_are_known_by_their_names_on_hugging_face(name: str, known: tuple[object, ...] | None) -> None:
    assert known_model(name, specs.model_names()) == known


def test_precision_and_context_that_a_name_says_are_keys() -> None:
    assert engine_of("", "vllm serve RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8") == {"quantization": "fp8"}
    assert engine_of("", "vllm serve meta-llama/Meta-Llama-3-8B") == {"max_model_len": 8192}
    assert engine_of("--max-model-len 4096", "vllm serve meta-llama/Meta-Llama-3-8B") == {"max_model_len": 4096}


def test_a_config_json_is_checked_and_seen_from_the_yamls_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m").mkdir()
    Path("out").mkdir()
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "num_hidden_layers": 2,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 1000,
        "max_position_embeddings": 4096,
        "torch_dtype": "bfloat16",
        "rms_norm_eps": 1e-5,
        "hidden_act": "silu",
    }
    Path("m/config.json").write_text(json.dumps(config))
    output = Path("out/mine.yaml")
    bench = "vllm bench serve --dataset-name custom --dataset-path d.jsonl"
    for command, model in (("vllm serve ./m", None), ("vllm serve acme/secret", "m/config.json")):
        output.write_text(import_commands(f"{command}; {bench}", Wishes(model=model, output=output)).text)
        scenario = load_scenario(output)
        assert (scenario.name, scenario.model) == ("mine", "../m/config.json")
        assert scenario.model_dump()["workload"]["path"] == "../d.jsonl"
    Path("m/config.json").write_text("{}")
    assert refusal("vllm serve x", model="m/config.json").startswith("m/config.json: ")


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("", "command: is empty; give one of vllm serve, "),
        ("# only words", "command: is empty"),
        ("python train.py --lr 1", "command: 'python train.py --lr' is none of vllm serve, "),
        ("vllm chat", "command: 'vllm chat' is none of"),
        (f"{SERVE} 'x", "command: line 1: the quote ' is not closed"),
        (f"{SERVE} --max-num-seqs", "command: --max-num-seqs: needs a value"),
        (f"{SERVE} --max-num-seqs --port 1", "command: --max-num-seqs: needs a value"),
        (f"{SERVE} --max-num-seqs many", "command: --max-num-seqs: 'many' is not the number that it takes"),
        (f"{SERVE} --max-num-seqs=", "command: --max-num-seqs: '' is not the number that it takes"),
        (f"{SERVE} --max-num-seqs $N", "command: --max-num-seqs: $N is the shell's to fill in"),
        (f"{SERVE} --max-num-seqs 0", "command: --max-num-seqs 0: engine.max_num_seqs: 0 is out of range"),
        (
            f"{SERVE} --gpu-memory-utilization nan",
            "command: --gpu-memory-utilization: 'nan' is not the number that it takes",
        ),
        (f"{SERVE} --gpu-memory-utilization 2", "--gpu-memory-utilization 2: engine.gpu_memory_utilization: 2 is out"),
        (f"{SERVE} --scheduling-policy x", "--scheduling-policy x: engine.scheduling_policy: 'x' is unknown; choose"),
        (f"{BENCH} --request-rate 0", "--request-rate 0: workload.rate: 0 is out of range"),
        (f"{BENCH} --num-prompts 0", "--num-prompts 0: is out of range: must be at least 1"),
        (f"{BENCH} --random-range-ratio 1", "--random-range-ratio: '1' is out of range: must be at least 0, below 1"),
        (
            f"{SERVING} --dataset-name random --random-range-ratio 2",
            "--random-range-ratio: '2' is out of range: must be from",
        ),
        (f"{BENCH} --goodput itl:3", "--goodput: 'itl:3' is no target; write ttft:MILLISECONDS"),
        (f"{BENCH} --max-concurrency 0", "--max-concurrency 0: workload.max_concurrency: 0 is out of range"),
        (f"{BENCH} --random-input-len 0", "--random-input-len 0: workload.prompt_tokens: 0 is out of range"),
        (
            f"{SERVING} --dataset-name random --random-output-len 0",
            "--random-output-len 0: workload.output_tokens: 0 is",
        ),
        (
            f"{BENCH} --dataset-name prefix_repetition --num-prompts 5",
            "--num-prompts 5: workload.prompts_per_group: 0 is out of range",
        ),
        (f"{SERVE}; {LAUNCH}", "command: holds 2 servers, vllm serve and sglang.launch_server: a scenario has one"),
        ("vllm serve", "command: names no model; give --model"),
        ("vllm serve --frobnicate a/b", "names no model, unless it is the value of --frobnicate a/b; give --model"),
        ("vllm serve $MODEL", "command: $MODEL is the shell's to fill in"),
        ("vllm serve acme/gpt-5", "command: 'acme/gpt-5' is no model of the catalogue; give --model with"),
    ],
)
def test_a_wrong_command_is_one_line_that_names_the_flag(command: str, says: str) -> None:
    assert says in refusal(command)


_PROGRAMS = {
    "vllm serve": SERVE,
    "vllm bench serve": BENCH,
    "vllm bench throughput": "vllm bench throughput --model Qwen/Qwen3-8B",
    "vllm bench latency": "vllm bench latency --model Qwen/Qwen3-8B",
    "sglang.launch_server": LAUNCH,
    "sglang.bench_serving": SERVING,
    "sglang.bench_offline_throughput": "python -m sglang.bench_offline_throughput --model Qwen/Qwen3-8B",
}
_VALUES = (
    "",
    "0",
    "-1",
    "1.5",
    "8k",
    "1e400",
    "nan",
    "inf",
    "true",
    "'{}'",
    "auto",
    "lpm",
    "fp8",
    "ttft:1",
    "custom",
    "$X",
)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_whatever_the_flags_are_the_yaml_loads_or_one_line_says_why(data: st.DataObject) -> None:
    name, command = data.draw(st.sampled_from(list(_PROGRAMS.items())))
    table = tables()[name]
    flag = st.tuples(st.sampled_from(sorted(table)), st.sampled_from(_VALUES)).map(
        lambda pair: f"--{pair[0]} {pair[1]}"
    )
    command = " ".join([command, *data.draw(st.lists(flag, max_size=4))])
    says = ""
    try:
        import_commands(command, Wishes())
    except ScenarioError as error:
        says = str(error)
    assert "\n" not in says


@pytest.mark.parametrize(
    "path", ["1e400", "true", "a: b # c", "[a", "two\nlines", "\x85\x07", "null", "~", "0o17", "é"]
)
def test_any_text_comes_back_out_of_the_yaml(path: str) -> None:
    command = shlex.join([*BENCH.split(), "--dataset-name", "custom", "--dataset-path", path, "--unknown", path])
    assert scenario_of(command)["workload"]["path"] == path


def test_wrong_wishes_are_one_line() -> None:
    assert refusal(SERVE, gpu="voodoo2").startswith(
        "command: --gpu voodoo2: hardware.gpu: 'voodoo2' is unknown; choose"
    )
    assert "--model gpt-5: model: 'gpt-5' is unknown; choose" in refusal(SERVE, model="gpt-5")
    assert "name: 'a/b' must be letters" in refusal(SERVE, name="a/b")
    assert refusal(SERVE, model="none.json").startswith("none.json: cannot be read")


@pytest.mark.parametrize(("text", "number"), [("12", 12), ("8k", 8000), ("8K", 8192), ("25.6k", 25600), ("1M", 2**20)])
def test_numbers_are_read_as_vllm_reads_them(text: str, number: int) -> None:
    assert whole(text) == number
    with pytest.raises(ValueError, match="invalid literal"):
        whole("1.5K")
