"""The analytic model against what others measured on real engines; prints the table of docs/cost-model.md.

    python -m llmsim.tests.benchmarks.measured_figures

Nothing is fitted to these figures. The recorded runs are in the shared data. A test holds the document's table
against what this prints.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from llmsim.policies.core import specs
from llmsim.policies.core.estimator import StepShape
from llmsim.policies.core.memory import GIB, memory_budget
from llmsim.policies.core.request import Arrival, Output, Prompt, Request
from llmsim.policies.core.workload import Workload
from llmsim.scenarios.assembly import Assembly, assemble
from llmsim.scenarios.loading import scenario_from
from llmsim.scenarios.run import facts
from llmsim.sim.cost_model.analytic import AnalyticCostModel
from llmsim.sim.driver import SimDriver
from llmsim.sim.executor import SimExecutor
from llmsim.sim.metrics import Summary, summarize
from llmsim.sim.recorder import Recorder
from llmsim.tests.support.shared import shared

LLAMA = specs.model("llama-3.1-8b")
BLOG_LINES = {"bf16": (2, 6.44, 4.37e-5), "fp8": (1, 6.58, 2.37e-5)}
"""vLLM 0.19.1, one H100, one request at a time: KV bytes, ITL at no context and its slope, ms (blog of 2026-04-22)."""
QWEN_72B = replace(specs.model("llama-3.1-70b"), name="qwen2.5-72b", intermediate_size=29_568, vocab_size=152_064)
"""Its config.json's sizes; the others are Llama-3.1-70B's."""
TWO_H100 = {128: 30.9, 1024: 31.0, 4096: 31.1, 8192: 31.3}
"""TPOT of one request in ms by prompt tokens, 128 out (tenstorrent/tt-inference-server, issue 143, April 2025)."""
RECORDED = {"rtx-4090": "vllm0.19-rtx4090-llama3.1-8b", "rtx-pro-6000": "vllm0.19-rtxpro6000-llama3.1-8b"}
RECORDED_ENGINE: dict[str, dict[str, object]] = {
    "rtx-4090": {"max_num_seqs": 256, "num_gpu_blocks_override": 2588},
    "rtx-pro-6000": {"max_num_seqs": 128},
}


class Figure(NamedTuple):
    """One row of the table."""

    what: str
    unit: str
    measured: float
    predicted: float

    def row(self) -> str:
        """The row in Markdown."""
        error = f"{100 * (self.predicted / self.measured - 1):+.1f} %"
        return f"| {self.what} | {_shown(self.measured)} {self.unit} | {_shown(self.predicted)} {self.unit} | {error} |"


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


class ClosedLoop:
    """So many requests, all alike but in content, so many of them at once."""

    def __init__(self, num_requests: int, concurrency: int, prompt_tokens: int, output_tokens: int) -> None:
        self._left = iter(range(num_requests))
        self._concurrency = concurrency
        self._prompt_tokens = prompt_tokens
        self._output = Output(output_tokens)

    def arrivals(self) -> Iterator[Arrival]:
        """The first ones, at time 0."""
        for _ in range(self._concurrency):
            yield from self._next(0)

    def on_finish(self, request_id: str, now_ns: int) -> Iterable[Arrival]:
        """The next one, at once."""
        return self._next(now_ns)

    def _next(self, now_ns: int) -> list[Arrival]:
        index = next(self._left, None)
        if index is None:
            return []
        prompt = Prompt([(index, 0, self._prompt_tokens)])
        request = Request(f"r{index}", now_ns, prompt, self._output.length, -index - 1)
        return [Arrival(now_ns, request, self._output)]


class Recording:
    """The requests of a recorded run, at their times."""

    def __init__(self, path: Path) -> None:
        with gzip.open(path, "rt") as lines:
            self.rows: list[dict[str, Any]] = [json.loads(line) for line in lines]

    def arrivals(self) -> Iterator[Arrival]:
        """One a row; hash ids stand for 16 tokens, the last for what is left."""
        for index, row in enumerate(self.rows):
            tokens = row["input_toks"]
            spans = [(hash_id, 0, min(16, tokens - 16 * i)) for i, hash_id in enumerate(row["hash_ids"])]
            output, time_ns = Output(row["output_toks"]), row["arrival_time_ns"]
            request = Request(f"r{index}", time_ns, Prompt(spans), output.length, -index - 1)
            yield Arrival(time_ns, request, output)

    def on_finish(self, request_id: str, now_ns: int) -> Iterable[Arrival]:
        """Nothing more."""
        return ()


def assembly_of(gpu: str, **engine: object) -> Assembly:
    """Llama-3.1-8B on one GPU."""
    workload = {"type": "independent"}
    hardware = {"gpu": gpu}
    return assemble(
        scenario_from({"name": "x", "model": LLAMA.name, "hardware": hardware, "engine": engine, "workload": workload})
    )


def played(assembly: Assembly, workload: Workload) -> Summary:
    """The summary of a run."""
    recorder = Recorder()
    SimDriver(assembly.core(), SimExecutor(assembly.cost_model()), workload, recorder).run()
    recorder.close()
    return summarize(recorder, facts(assembly))


def decode_line() -> Iterator[Figure]:
    """ITL of one request on an H100, host time hidden behind the device's and added to it."""
    for kv_dtype, (kv_bytes, intercept_ms, slope_ms) in BLOG_LINES.items():
        cost_model = AnalyticCostModel(LLAMA, specs.gpu("h100-sxm"), kv_dtype_bytes=kv_bytes)
        for context in (256, 4096, 16_384, 65_536, 125_000):
            cost = cost_model.step_cost(StepShape((), 1, context, context, 1, 0))
            measured = intercept_ms + slope_ms * context
            what = f"H100, ITL of one request, {kv_dtype} KV, context {context:,}"
            yield Figure(what, "ms", measured, max(cost.device_ns, cost.host_ns) / 1e6)


def under_load() -> Iterator[Figure]:
    """The same engine under 8 requests at a time, 150 in all, 20,000 tokens in and 2,000 out."""
    summary = played(assembly_of("h100-sxm"), ClosedLoop(150, 8, 20_000, 2_000))
    what = "H100, 8 at a time of 20k in, 2k out: "
    yield Figure(what + "P50 TTFT", "ms", 763.6, summary["ttft_s"]["p50"] * 1e3)
    yield Figure(what + "P50 ITL", "ms", 15.18, summary["itl_s"]["p50"] * 1e3)
    yield Figure(what + "output", "tok/s", 450.3, summary["output_tokens_per_s"])


def two_gpus() -> Iterator[Figure]:
    """Qwen2.5-72B over two H100s, by an engine from before asynchronous scheduling: the host's time is not hidden."""
    cost_model = AnalyticCostModel(QWEN_72B, specs.gpu("h100-sxm"), tensor_parallel=2)
    for prompt_tokens, measured_ms in TWO_H100.items():
        context = prompt_tokens + 64
        cost = cost_model.step_cost(StepShape((), 1, context, context, 1, 0))
        what = f"2 x H100, Qwen2.5-72B, early 2025: TPOT of one request, {prompt_tokens:,} in, 128 out"
        yield Figure(what, "ms", measured_ms, (cost.device_ns + cost.host_ns) / 1e6)


def kv_pools() -> Iterator[Figure]:
    """Bytes left for KV at utilisation 0.90, 2,048 tokens a step and 256 requests, as vLLM printed them."""
    for gpu, gib in (("a100-40g", 19.28), ("rtx-4090", 5.055)):
        budget = memory_budget(
            LLAMA,
            specs.gpu(gpu),
            tensor_parallel=1,
            gpu_memory_utilization=0.9,
            max_num_batched_tokens=2048,
            max_num_seqs=256,
            block_size=16,
        )
        yield Figure(f"{gpu}, memory for KV", "GiB", gib, budget.kv_bytes / GIB)
    qwen = specs.model("qwen2.5-7b")
    blocks = 16 * GIB // (16 * qwen.kv_bytes_per_token())
    yield Figure("Qwen2.5-7B, tokens in 16 GiB of KV", "tokens", 299_584, blocks * 16)


def recorded(gpu: str, folder: Path) -> Iterator[Figure]:
    """300 requests at 10 a second, more than the GPU serves."""
    workload = Recording(shared("measured", RECORDED["rtx-4090"], "workload.jsonl.gz"))
    rows = [json.loads(line) for line in (folder / "vllm_requests.jsonl").read_text().splitlines()]
    outputs = {f"bench-{i}": row["output_toks"] for i, row in enumerate(workload.rows)}
    ttft_s = [row["first_token_ts"] - row["queued_ts"] for row in rows]
    decode_s = [(row["last_token_ts"] - row["first_token_ts"], outputs[row["request_id"]] - 1) for row in rows]
    lasted_s = max(row["last_token_ts"] for row in rows) - min(row["queued_ts"] for row in rows)
    engine = {"max_model_len": 32_768, "max_num_batched_tokens": 2048, "gpu_memory_utilization": 0.9}
    summary = played(assembly_of(gpu, **engine, **RECORDED_ENGINE[gpu]), workload)
    what = f"{gpu}, 300 requests at 10/s: "
    yield Figure(what + "mean TTFT", "s", mean(ttft_s), summary["ttft_s"]["mean"])
    yield Figure(what + "mean TPOT", "ms", 1e3 * mean(s / n for s, n in decode_s if n), summary["tpot_s"]["mean"] * 1e3)
    yield Figure(what + "output", "tok/s", sum(outputs.values()) / lasted_s, summary["output_tokens_per_s"])


def table(figures: Iterable[Figure]) -> str:
    """The table in Markdown."""
    head = "| Llama-3.1-8B bf16, vLLM 0.19 | measured | predicted | error |\n|---|---|---|---|"
    return "\n".join([head, *(figure.row() for figure in figures)])


def figures() -> Iterator[Figure]:
    """All rows."""
    yield from decode_line()
    yield from under_load()
    yield from two_gpus()
    yield from kv_pools()
    for gpu, name in RECORDED.items():
        yield from recorded(gpu, shared("measured", name))


if __name__ == "__main__":
    print(table(figures()))
