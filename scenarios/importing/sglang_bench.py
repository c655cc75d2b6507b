"""The flags of SGLang's benchmarks: `sglang.bench_serving`, and offline throughput, which takes the server's too.

Datasets and lengths as in SGLang 0.5.23's `benchmark/datasets`: lengths are uniform from the ratio times the length
given up to that length (`compute_random_lens`), so that the default ratio of 0 begins at one token.
"""

from __future__ import annotations

from typing import Any

from .draft import Draft
from .flags import NOT_SUPPORTED, Answers, ByCode, Rule, Table
from .sglang_flags import SGLANG_ENGINE
from .traffic import CLIENT, PACE, Bench, Workload, ratio, uniform
from .values import number, text, whole
from .vllm_bench import sharegpt

_DATASETS: dict[str, Rule] = {
    "backend": ByCode(text),
    "sharegpt-context-len": ByCode(whole),
    "gsp-num-groups": ByCode(whole),
    "gsp-prompts-per-group": ByCode(whole),
    "gsp-system-prompt-len": ByCode(whole),
    "gsp-question-len": ByCode(whole),
    "gsp-output-len": ByCode(whole),
    "gsp-range-ratio": ByCode(text),
    "gsp-ordered": ByCode(text, "nothing"),
    "gsp-num-turns": ByCode(whole),
    "gsp-group-distribution": ByCode(text),
    "gsp-zipf-alpha": ByCode(number),
    "gsp-fast-prepare": ByCode(text, "nothing"),
    "gsp-send-routing-key": ByCode(text, "nothing"),
    "use-trace-timestamps": ByCode(text, "nothing"),
    "mooncake-slowdown-factor": ByCode(number),
    "mooncake-num-rounds": ByCode(whole),
    "mooncake-workload": ByCode(text),
}

SGLANG_BENCH: Table = {**CLIENT, **PACE, **_DATASETS}
SGLANG_OFFLINE: Table = {**CLIENT, **SGLANG_ENGINE, **PACE, **_DATASETS}


def serving_traffic(flags: Answers, draft: Draft) -> None:
    """The traffic of `sglang.bench_serving`; offline throughput sends all at once."""
    bench = Bench(flags, draft, num_prompts=1000)
    flags.get("backend", None)
    dataset = flags.get("dataset-name", "sharegpt")
    read = {
        "random": _random,
        "random-ids": _random,
        "sharegpt": _sharegpt,
        "generated-shared-prefix": _shared_prefix,
        "mooncake": _mooncake,
        "mooncake-conversation": _mooncake,
    }.get(dataset)
    bench.finish(read(bench) if read else bench.stand_in(dataset, *_lengths(bench)), dataset, read is not None)


def _lengths(bench: Bench) -> tuple[int, int]:
    return bench.flags.get("random-input-len", 1024), bench.flags.get("random-output-len", 1024)


def _up_to(length: int, share: float) -> Any:
    return uniform(length, int(length * share), length)


def _random(bench: Bench) -> Workload:
    share = _share(bench, "random-range-ratio", "0")
    prompt, output = _lengths(bench)
    return bench.independent(_up_to(prompt, share), _up_to(output, share))


def _share(bench: Bench, name: str, default: str) -> float:
    return ratio(name, bench.flags.get(name, default), "from 0 to 1", lambda r: 0 <= r <= 1)


def _sharegpt(bench: Bench) -> Workload:
    if "sharegpt-context-len" in bench.flags:
        bench.flags.get("sharegpt-context-len", None)
        bench.draft.not_carried(
            bench.flags.shown("sharegpt-context-len"), f"{NOT_SUPPORTED}: no conversation is left out"
        )
    return sharegpt(bench)


def _shared_prefix(bench: Bench) -> Workload:
    """Groups of prompts; SGLang takes their number from the groups, whatever `--num-prompts` says."""
    flags, share = bench.flags, _share(bench, "gsp-range-ratio", "1")
    for name, as_is in (("gsp-num-turns", 1), ("gsp-group-distribution", "uniform")):
        if flags.get(name, as_is) != as_is:
            bench.draft.not_carried(flags.shown(name), NOT_SUPPORTED)
    return {
        "type": "generated_shared_prefix",
        **bench.pace(),
        "num_groups": flags.get("gsp-num-groups", 64),
        "prompts_per_group": flags.get("gsp-prompts-per-group", 16),
        "system_prompt_len": _up_to(flags.get("gsp-system-prompt-len", 2048), share),
        "question_len": _up_to(flags.get("gsp-question-len", 128), share),
        "output_len": _up_to(flags.get("gsp-output-len", 256), share),
        "order": "grouped" if flags.get("gsp-ordered", False) else "shuffled",
    }


def _mooncake(bench: Bench) -> Workload:
    """Its requests come at the trace's own times, slowed down."""
    flags = bench.flags
    flags.get("use-trace-timestamps", True)
    if flags.get("mooncake-num-rounds", 1) != 1:
        bench.draft.not_carried(flags.shown("mooncake-num-rounds"), f"{NOT_SUPPORTED}: each row is one request")
    which = flags.get("mooncake-workload", "conversation")
    return bench.trace("mooncake", f"{which}_trace.jsonl", time_scale=float(flags.get("mooncake-slowdown-factor", 1)))
