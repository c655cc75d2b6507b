"""The flags of vLLM's benchmarks: `vllm bench serve`, `throughput` and `latency`.

Datasets and lengths as in vLLM 0.33's `benchmarks/datasets`: of `random`, lengths are uniform from (1 - r) to (1 + r)
times the length given.
"""

from __future__ import annotations

import json
import math
from typing import Any

from .draft import Draft
from .flags import Answers, ByCode, Rule, Table
from .traffic import CLIENT, PACE, Bench, Workload, ratio, uniform
from .values import number, text, whole
from .vllm_flags import VLLM_ENGINE

_DATASETS: dict[str, Rule] = {
    "burstiness": ByCode(number),
    "input-len": ByCode(whole),
    "output-len": ByCode(whole),
    "prefix-len": ByCode(whole),
    "random-prefix-len": ByCode(whole),
    "custom-output-len": ByCode(whole),
    "prefix-repetition-prefix-len": ByCode(whole),
    "prefix-repetition-suffix-len": ByCode(whole),
    "prefix-repetition-num-prefixes": ByCode(whole),
    "prefix-repetition-output-len": ByCode(whole),
    "timed-trace-chunk-hash-size": ByCode(whole),
    "timed-trace-sec-multiplier": ByCode(number),
    "self-timed": ByCode(text, "nothing"),
}

VLLM_BENCH: Table = {**CLIENT, **PACE, **_DATASETS}
VLLM_OFFLINE: Table = {
    **CLIENT,
    **VLLM_ENGINE,
    **PACE,
    **_DATASETS,
    "batch-size": ByCode(whole),
    "num-iters": ByCode(whole),
    "num-iters-warmup": ByCode(whole),
}


def serve_traffic(flags: Answers, draft: Draft) -> None:
    """The traffic of `vllm bench serve`, and of `throughput`, which sends all at once."""
    bench = Bench(flags, draft, num_prompts=1000)
    dataset = flags.get("dataset-name", "random")
    read = {
        "random": _random,
        "prefix_repetition": _prefix_repetition,
        "sharegpt": sharegpt,
        "custom": _custom,
        "burstgpt": _burstgpt,
        "timed_trace": _timed_trace,
    }.get(dataset)
    bench.finish(read(bench) if read else _stand_in(bench, dataset), dataset, read is not None)


def latency_traffic(flags: Answers, draft: Draft) -> None:
    """The traffic of `vllm bench latency`: one batch; its repetitions would all be the same."""
    num_requests = flags.get("batch-size", 8)
    lengths = {"prompt_tokens": flags.get("input-len", 32), "output_tokens": flags.get("output-len", 128)}
    workload = {"type": "independent", "rate": "inf", "requests": num_requests, **lengths}
    Bench(flags, draft, num_requests).finish(workload, "of one batch")


def _lengths(bench: Bench, prompt: int, output: int) -> tuple[int, int]:
    """`--input-len` and `--output-len` stand for the dataset's own flags."""
    flags = bench.flags
    general = flags.get("input-len", prompt), flags.get("output-len", output)
    return flags.get("random-input-len", general[0]), flags.get("random-output-len", general[1])


def _random(bench: Bench) -> Workload:
    prompt, output = _lengths(bench, 1024, 128)
    ratios = _ratios(bench.flags.get("random-range-ratio", "0"))
    question, answer = _around(prompt, ratios[0]), _around(output, ratios[1])
    prefix = bench.flags.get("random-prefix-len", bench.flags.get("prefix-len", 0))
    if not prefix:
        return bench.independent(question, answer)
    return {
        "type": "generated_shared_prefix",
        **bench.pace(),
        "num_groups": 1,
        "prompts_per_group": bench.requests(),
        "system_prompt_len": prefix,
        "question_len": question,
        "output_len": answer,
    }


def _ratios(given: str) -> tuple[float, float]:
    """One ratio for inputs and outputs, or a JSON object with both."""
    try:
        both = json.loads(given)
    except ValueError:
        both = given
    if not isinstance(both, dict):
        both = {"input": given, "output": given}
    one, other = (
        ratio("random-range-ratio", str(both.get(key, 0)), "at least 0, below 1", lambda r: 0 <= r < 1)
        for key in ("input", "output")
    )
    return one, other


def _around(length: int, spread: float) -> Any:
    return uniform(length, math.floor(length * (1 - spread)), math.ceil(length * (1 + spread)))


def _prefix_repetition(bench: Bench) -> Workload:
    flags = bench.flags
    num_prefixes = flags.get("prefix-repetition-num-prefixes", 10)
    return {
        "type": "generated_shared_prefix",
        **bench.pace(),
        "num_groups": num_prefixes,
        "prompts_per_group": bench.requests() // max(num_prefixes, 1),
        "system_prompt_len": flags.get("prefix-repetition-prefix-len", 256),
        "question_len": flags.get("prefix-repetition-suffix-len", 256),
        "output_len": flags.get("prefix-repetition-output-len", 128),
    }


def sharegpt(bench: Bench) -> Workload:
    """ShareGPT conversations, of which both projects' benchmarks send the first question alone."""
    if "sharegpt-output-len" in bench.flags:
        bench.flags.get("sharegpt-output-len", None)
        bench.draft.not_carried(bench.flags.shown("sharegpt-output-len"), "is not supported: answers are the file's")
    bench.draft.assume(
        "workload.format", "sharegpt plays whole conversations; the benchmark sends first questions alone"
    )
    return bench.trace("sharegpt", "ShareGPT_V3_unfiltered_cleaned_split.json")


def _custom(bench: Bench) -> Workload:
    if bench.flags.get("custom-output-len", 256) != -1:
        bench.draft.assume("workload.max_tokens", "outputs are the file's output_tokens, not --custom-output-len")
    return bench.trace("custom", "data.jsonl")


def _burstgpt(bench: Bench) -> Workload:
    return bench.trace("burstgpt", "BurstGPT_without_fails_2.csv")


def _timed_trace(bench: Bench) -> Workload:
    """Its times are in seconds times the multiplier; the trace's reader takes milliseconds."""
    bench.flags.get("self-timed", True)
    scale = 1000 * bench.flags.get("timed-trace-sec-multiplier", 1)
    block = bench.flags.get("timed-trace-chunk-hash-size", 16)
    return bench.trace("hash_ids", "trace.jsonl", block_tokens=block, time_scale=float(scale))


def _stand_in(bench: Bench, dataset: str) -> Workload:
    return bench.stand_in(dataset, *_lengths(bench, 512, 128))
