"""Command lines as the documentation of vLLM and SGLang has them import to scenarios that load and resolve."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from llmsim.policies.core import specs
from llmsim.scenarios.engine_defaults import resolve
from llmsim.scenarios.importing.imported import Imported, Wishes, import_commands
from llmsim.scenarios.loading import load_scenario
from llmsim.scenarios.schema import Scenario


class Documented(NamedTuple):
    """A command line, the page that it is from, and what it must import to."""

    page: str
    command: str
    keys: dict[str, Any]
    """By path; `engine.…` as it resolves, others as they load."""
    dropped: tuple[str, ...] = ()
    """All that is named as not carried over."""
    model: str | None = None
    """Given as `--model`, where the catalogue lacks the page's model."""


VLLM = [
    Documented(
        "docs.vllm.ai/en/latest/deployment/docker",
        r"""docker run --rm --gpus all \
    -v ~/.cache/huggingface:/root/.cache/huggingface \
    -v vllm-cache:/root/.cache/vllm \
    -p 8000:8000 \
    vllm/vllm-openai:latest \
    meta-llama/Llama-3.1-8B-Instruct""",
        {"model": "llama-3.1-8b", "engine.max_num_batched_tokens": 8192, "engine.max_model_len": 131072},
        ("`docker run --rm` before vllm serve",),
    ),
    Documented(
        "docs.vllm.ai/en/latest/benchmarking/cli, custom dataset",
        r"""vllm serve meta-llama/Llama-3.1-8B-Instruct
vllm bench serve --port 9001 --save-result --save-detailed \
  --backend vllm \
  --model meta-llama/Llama-3.1-8B-Instruct \
  --endpoint /v1/completions \
  --dataset-name custom \
  --dataset-path <path-to-your-data-jsonl> \
  --skip-chat-template \
  --num-prompts 80 \
  --max-concurrency 1 \
  --temperature=0.3 \
  --top-p=0.75 \
  --result-dir "./log/" """,
        {"workload.format": "custom", "workload.limit": 80, "workload.path": "<path-to-your-data-jsonl>"},
        (
            "--port",
            "--save-result",
            "--save-detailed",
            "--backend",
            "--endpoint",
            "--skip-chat-template",
            "--max-concurrency 1",
            "--temperature",
            "--top-p",
            "--result-dir",
        ),
    ),
    Documented(
        "docs.vllm.ai/en/latest/benchmarking/cli, results visualization",
        r"""vllm bench serve \
    --backend vllm \
    --model meta-llama/Llama-3.1-8B-Instruct \
    --endpoint /v1/completions \
    --dataset-name sharegpt \
    --dataset-path <your data path>/ShareGPT_V3_unfiltered_cleaned_split.json \
    --num-prompts 100 \
    --plot-timeline \
    --timeline-itl-thresholds 2,5 \
    --plot-dataset-stats \
    --save-result""",
        {"workload.format": "sharegpt", "workload.limit": 100, "engine.max_num_seqs": 1024},
        (
            "--backend",
            "--endpoint",
            "--plot-timeline",
            "--timeline-itl-thresholds",
            "--plot-dataset-stats",
            "--save-result",
        ),
    ),
    Documented(
        "docs.vllm.ai/en/latest/benchmarking/cli, speculative decoding",
        r"""VLLM_WORKER_MULTIPROC_METHOD=spawn \
vllm bench throughput \
    --dataset-name=hf \
    --dataset-path=likaixin/InstructCoder \
    --model=meta-llama/Meta-Llama-3-8B-Instruct \
    --input-len=1000 \
    --output-len=100 \
    --num-prompts=2048 \
    --async-engine \
    --speculative-config $'{"method": "ngram",
    "num_speculative_tokens": 5, "prompt_lookup_max": 5,
    "prompt_lookup_min": 2}'""",
        {
            "model": "llama-3.1-8b",
            "engine.max_model_len": 8192,
            "workload.rate": "inf",
            "workload.requests": 2048,
            "workload.prompt_tokens": 1000,
            "workload.output_tokens": 100,
        },
        (
            "VLLM_WORKER_MULTIPROC_METHOD",
            "--dataset-name hf",
            "--async-engine",
            "--speculative-config",
        ),
    ),
    Documented(
        "docs.vllm.ai/en/latest/benchmarking/cli, prefix repetition dataset",
        r"""vllm bench serve \
  --backend openai \
  --model meta-llama/Llama-2-7b-chat-hf \
  --dataset-name prefix_repetition \
  --num-prompts 100 \
  --prefix-repetition-prefix-len 512 \
  --prefix-repetition-suffix-len 128 \
  --prefix-repetition-num-prefixes 5 \
  --prefix-repetition-output-len 128""",
        {
            "workload.num_groups": 5,
            "workload.prompts_per_group": 20,
            "workload.system_prompt_len": 512,
            "workload.question_len": 128,
            "workload.output_len": 128,
        },
        ("--backend",),
        "llama-3.1-8b",
    ),
    Documented(
        "docs.vllm.ai/en/latest/benchmarking/cli, timed traces",
        "vllm serve Qwen/Qwen3.5-2B \\\n--host 127.0.0.1 --port 8000\n"
        "vllm bench serve --model Qwen/Qwen3.5-2B \\  \n"
        "--dataset-name=timed_trace --num-prompts 100 --host 127.0.0.1 \\\n"
        "--port 8000 --dataset-path ./conversation_trace.jsonl \\\n"
        "--ignore-eos  --self-timed --timed-trace-chunk-hash-size 512 \\\n"
        "--timed-trace-sec-multiplier 0.001 ",
        {
            "workload.format": "hash_ids",
            "workload.block_tokens": 512,
            "workload.time_scale": 1.0,
            "workload.limit": 100,
        },
        ("--host", "--port"),
        "qwen3-0.6b",
    ),
    Documented(
        "docs.vllm.ai/en/latest/benchmarking/cli, synthetic random images",
        r"""vllm bench serve \
  --backend openai-chat \
  --model Qwen/Qwen2.5-VL-3B-Instruct \
  --endpoint /v1/chat/completions \
  --dataset-name random-mm \
  --num-prompts 100 \
  --max-concurrency 10 \
  --random-prefix-len 25 \
  --random-input-len 300 \
  --random-output-len 40 \
  --random-range-ratio 0.2 \
  --random-mm-base-items-per-request 2 \
  --random-mm-limit-mm-per-prompt '{"image": 3, "video": 0}' \
  --random-mm-bucket-config '{(224, 224, 1): 1.0}' \
  --request-rate inf \
  --ignore-eos \
  --seed 42""",
        {"workload.max_concurrency": 10, "workload.rate": "inf", "workload.prompt_tokens": 300, "run.seed": 42},
        (
            "--backend",
            "--endpoint",
            "--dataset-name random-mm",
            "--random-prefix-len 25",
            "--random-range-ratio 0.2",
            "--random-mm-base-items-per-request 2",
            '--random-mm-limit-mm-per-prompt {"image": 3, "video": 0}',
            "--random-mm-bucket-config {(224, 224, 1): 1.0}",
        ),
        "qwen2.5-7b",
    ),
]

SGLANG = [
    Documented(
        "docs.sglang.io/advanced_features/server_arguments, tensor parallelism",
        "python -m sglang.launch_server --model-path meta-llama/Meta-Llama-3-8B-Instruct --tp 2",
        {
            "engine.preset": "sglang@0.5.23",
            "engine.context_length": 8192,
            "engine.chunked_prefill_size": 8192,
            "hardware.tensor_parallel": 2,
        },
    ),
    Documented(
        "docs.sglang.io/advanced_features/server_arguments, memory",
        "python -m sglang.launch_server --model-path meta-llama/Meta-Llama-3-8B-Instruct --mem-fraction-static 0.7",
        {"engine.mem_fraction_static": 0.7},
    ),
    Documented(
        "docs.sglang.io/advanced_features/server_arguments, chunked prefill",
        "python -m sglang.launch_server --model-path meta-llama/Meta-Llama-3-8B-Instruct --chunked-prefill-size 4096",
        {"engine.chunked_prefill_size": 4096, "engine.schedule_policy": "fcfs", "engine.page_size": 1},
    ),
    Documented(
        "docs.sglang.io/developer_guide/bench_serving, random",
        r"""python3 -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B-Instruct
python3 -m sglang.bench_serving \
  --backend sglang \
  --host 127.0.0.1 --port 30000 \
  --model meta-llama/Llama-3.1-8B-Instruct \
  --dataset-name random \
  --random-input-len 1024 --random-output-len 1024 --random-range-ratio 0.5 \
  --num-prompts 2000 \
  --request-rate 100 \
  --max-concurrency 512 \
  --output-file sglang_random.jsonl --output-details""",
        {
            "workload.rate": 100,
            "workload.max_concurrency": 512,
            "workload.requests": 2000,
            "workload.prompt_tokens.uniform.min": 512,
            "workload.prompt_tokens.uniform.max": 1024,
        },
        ("--host", "--port", "--output-file", "--output-details"),
    ),
    Documented(
        "docs.sglang.io/developer_guide/bench_serving, shortened flags",
        r"""python -m sglang.launch_server --model-path Qwen/Qwen2.5-3B-Instruct
python3 -m sglang.bench_serving \
    --backend sglang \
    --dataset-name random \
    --num-prompts 3000 \
    --random-input 1024 \
    --random-output 1024 \
    --random-range-ratio 0.5""",
        {"workload.requests": 3000, "workload.rate": "inf", "workload.output_tokens.uniform.max": 1024},
        (),
        "qwen2.5-7b",
    ),
    Documented(
        "docs.sglang.io/developer_guide/bench_serving, generated shared prefix",
        r"""python3 -m sglang.bench_serving \
  --backend sglang \
  --host 127.0.0.1 --port 30000 \
  --model meta-llama/Llama-3.1-8B-Instruct \
  --dataset-name generated-shared-prefix \
  --gsp-num-groups 64 --gsp-prompts-per-group 16 \
  --gsp-system-prompt-len 2048 --gsp-question-len 128 --gsp-output-len 256 \
  --num-prompts 1024""",
        {
            "engine.preset": "sglang@0.5.23",
            "workload.num_groups": 64,
            "workload.prompts_per_group": 16,
            "workload.system_prompt_len": 2048,
            "workload.question_len": 128,
            "workload.output_len": 256,
            "workload.order": "shuffled",
        },
        ("--host", "--port", "--num-prompts 1024"),
    ),
    Documented(
        "docs.sglang.io/developer_guide/bench_serving, against vLLM",
        r"""python3 -m sglang.bench_serving \
  --backend vllm \
  --base-url http://127.0.0.1:8000 \
  --model meta-llama/Llama-3.1-8B-Instruct \
  --dataset-name sharegpt \
  --num-prompts 1000 \
  --sharegpt-output-len 256""",
        {"engine.preset": "vllm@0.33", "workload.format": "sharegpt", "workload.limit": 1000},
        ("--base-url", "--sharegpt-output-len 256"),
    ),
    Documented(
        "docs.sglang.io/developer_guide/bench_serving, mooncake",
        r"""python3 -m sglang.bench_serving \
  --backend sglang \
  --host 127.0.0.1 --port 30000 \
  --model model-name \
  --dataset-name mooncake-conversation \
  --mooncake-slowdown-factor 1.0 \
  --mooncake-num-rounds 1000 \
  --use-trace-timestamps true \
  --random-output-len 256""",
        {"workload.format": "mooncake", "workload.time_scale": 1.0, "workload.path": "conversation_trace.jsonl"},
        ("--host", "--port", "--mooncake-num-rounds 1000", "--random-output-len 256"),
        "llama-3.1-8b",
    ),
    Documented(
        "docs.sglang.io/developer_guide/benchmark_and_profiling, concurrency",
        "python3 -m sglang.bench_serving --backend sglang --max-concurrency 16 --num-prompts 80 "
        "--random-input-len 256 --random-output-len 32 --dataset-name random",
        {"workload.max_concurrency": 16, "workload.requests": 80, "workload.prompt_tokens.uniform.min": 1},
        (),
        "llama-3.1-8b",
    ),
    Documented(
        "docs.sglang.io/developer_guide/benchmark_and_profiling, offline",
        "export SGLANG_PROFILE_WITH_STACK=False\n"
        "python -m sglang.bench_offline_throughput --model-path meta-llama/Llama-3.1-8B-Instruct "
        "--dataset-name random --num-prompts 10 --profile --mem-frac=0.8",
        {"engine.mem_fraction_static": 0.8, "workload.requests": 10, "workload.rate": "inf"},
        ("--profile", "SGLANG_PROFILE_WITH_STACK"),
    ),
]


def imported(documented: Documented) -> Imported:
    return import_commands(documented.command, Wishes(model=documented.model))


def at(whole: Any, path: str) -> Any:
    for key in path.split("."):
        whole = whole[key]
    return whole


def resolved(scenario: Scenario) -> dict[str, Any]:
    """The scenario as it loads, the engine with its defaults."""
    gpu, model = specs.gpu(scenario.hardware.gpu), specs.model(scenario.model)
    engine = resolve(scenario, gpu.memory_bytes, model.max_position_embeddings)
    return scenario.model_dump() | {"engine": {key: getattr(engine, key) for key in engine.__dataclass_fields__}}


@pytest.mark.parametrize("documented", VLLM + SGLANG, ids=lambda documented: documented.page)
def test_it_loads_and_resolves_to_what_it_says(documented: Documented, tmp_path: Path) -> None:
    path = tmp_path / "imported.yaml"
    path.write_text(imported(documented).text, encoding="utf-8")
    whole = resolved(load_scenario(path))
    assert {key: at(whole, key) for key in documented.keys} == documented.keys


@pytest.mark.parametrize("documented", VLLM + SGLANG, ids=lambda documented: documented.page)
def test_each_flag_that_is_not_carried_over_is_named(documented: Documented) -> None:
    found = imported(documented)
    named = {name for name in documented.dropped for note in found.notes if note.startswith(f"{name} ")}
    assert named == set(documented.dropped)
    assert len(found.notes) == len(documented.dropped), found.notes
    comments = " ".join(line[1:].strip() for line in found.text.splitlines() if line.startswith("#"))
    assert [name for name in documented.dropped if f"{name}: " not in comments] == []


def test_there_are_more_than_twelve() -> None:
    assert len(VLLM) + len(SGLANG) >= 12
