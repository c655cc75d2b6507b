"""What the flags of benchmarks make of the workload."""

from __future__ import annotations

import pytest

from llmsim.tests.support.imported import BENCH, SERVING, scenario_of, workload_of


@pytest.mark.parametrize(
    ("flags", "workload"),
    [
        ("", {"rate": "inf", "requests": 1000, "prompt_tokens": 1024, "output_tokens": 128}),
        ("--input-len 100 --output-len 10", {"prompt_tokens": 100, "output_tokens": 10}),
        ("--request-rate 2.5 --num-prompts 7", {"rate": 2.5, "requests": 7}),
        ("--request-rate 2 --burstiness 0.5", {"rate": 2, "arrivals": "gamma", "burstiness": 0.5}),
        ("--random-input-len 100 --random-range-ratio 0.25", {"prompt_tokens": {"uniform": {"min": 75, "max": 125}}}),
        (
            """--random-range-ratio '{"input": 0.5, "output": 0}'""",
            {"prompt_tokens": {"uniform": {"min": 512, "max": 1536}}, "output_tokens": 128},
        ),
        (
            "--random-prefix-len 512 --num-prompts 20",
            {"type": "generated_shared_prefix", "num_groups": 1, "prompts_per_group": 20, "system_prompt_len": 512},
        ),
        ("--dataset-name burstgpt --dataset-path b.csv --request-rate 3", {"format": "burstgpt", "rate": 3}),
    ],
)
def test_traffic_of_vllms_benchmark(flags: str, workload: dict[str, object]) -> None:
    found = workload_of(flags)
    assert {key: found[key] for key in workload} == workload


@pytest.mark.parametrize(
    ("flags", "workload"),
    [
        ("--dataset-name random", {"prompt_tokens": {"uniform": {"min": 1, "max": 1024}}}),
        ("--dataset-name random --random-range-ratio 1", {"prompt_tokens": 1024, "output_tokens": 1024}),
        ("--dataset-name generated-shared-prefix --gsp-ordered", {"num_groups": 64, "order": "grouped"}),
        (
            "--dataset-name generated-shared-prefix --gsp-range-ratio 0.5",
            {"system_prompt_len": {"uniform": {"min": 1024, "max": 2048}}},
        ),
        ("", {"format": "sharegpt", "rate": 1000000, "path": "ShareGPT_V3_unfiltered_cleaned_split.json"}),
        ("--dataset-name mooncake --mooncake-slowdown-factor 2", {"format": "mooncake", "time_scale": 2.0}),
    ],
)
def test_traffic_of_sglangs_benchmark(flags: str, workload: dict[str, object]) -> None:
    found = workload_of(flags, SERVING)
    assert {key: found[key] for key in workload} == workload


def test_a_batch_of_the_latency_benchmark_comes_at_once() -> None:
    command = "vllm bench latency --model Qwen/Qwen3-8B --batch-size 16 --input-len 64 -tp 2 --num-iters 5"
    whole = scenario_of(command)
    assert whole["workload"] == {
        "type": "independent",
        "rate": "inf",
        "requests": 16,
        "prompt_tokens": 64,
        "output_tokens": 128,
    }
    assert whole["hardware"]["tensor_parallel"] == 2


def test_targets_of_goodput_are_the_slo_and_the_seed_is_the_runs() -> None:
    whole = scenario_of(f"{BENCH} --goodput ttft:200 tpot:50 e2el:5000 --seed 7")
    assert whole["slo"] == {"ttft_s": 0.2, "tpot_s": 0.05, "e2e_s": 5.0}
    assert whole["run"] == {"seed": 7}
