"""What a call of each program says: its table of flags, and the traffic of a benchmark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ..errors import ScenarioError
from .command_line import SERVERS, Call, Program
from .draft import Draft
from .flags import Answers, Table, apply, parse
from .sglang_bench import SGLANG_BENCH, SGLANG_OFFLINE, serving_traffic
from .sglang_flags import SGLANG_ALIASES, SGLANG_ENGINE
from .shell import is_unknown
from .vllm_bench import VLLM_BENCH, VLLM_OFFLINE, latency_traffic, serve_traffic
from .vllm_flags import VLLM_ALIASES, VLLM_ENGINE


class Reading(NamedTuple):
    """How a program's flags are read."""

    preset: str
    table: Table
    aliases: Mapping[str, str]
    traffic: Callable[[Answers, Draft], None] | None


_READINGS = {
    Program.VLLM_SERVE: Reading("vllm", VLLM_ENGINE, VLLM_ALIASES, None),
    Program.VLLM_BENCH_SERVE: Reading("vllm", VLLM_BENCH, {}, serve_traffic),
    Program.VLLM_BENCH_THROUGHPUT: Reading("vllm", VLLM_OFFLINE, VLLM_ALIASES, serve_traffic),
    Program.VLLM_BENCH_LATENCY: Reading("vllm", VLLM_OFFLINE, VLLM_ALIASES, latency_traffic),
    Program.SGLANG_SERVE: Reading("sglang", SGLANG_ENGINE, SGLANG_ALIASES, None),
    Program.SGLANG_BENCH_SERVING: Reading("sglang", SGLANG_BENCH, {}, serving_traffic),
    Program.SGLANG_BENCH_OFFLINE: Reading("sglang", SGLANG_OFFLINE, SGLANG_ALIASES, serving_traffic),
}


def tables() -> dict[str, Table]:
    """The table of flags of each program, by the program's name."""
    return {program.value: reading.table for program, reading in _READINGS.items()}


def apply_call(call: Call, draft: Draft) -> str:
    """Put what a call says into the draft; the preset of the engine that it starts or measures is returned."""
    reading = _READINGS[call.program]
    alone, flags = parse(call.words, reading.table, reading.aliases)
    answers = apply(flags, reading.table, draft)
    if alone and call.program in SERVERS:
        model = alone.pop(0)
        if is_unknown(model):
            raise ScenarioError("command", None, f"{model} is the shell's to fill in; write the model's name")
        draft.set("model", model, model)
    for word in alone:
        draft.not_carried(f"`{word}`", "is no flag")
    if reading.traffic is None:
        return reading.preset
    preset = "vllm" if str(answers.get("backend", "")).startswith("vllm") else reading.preset
    if call.program in (Program.VLLM_BENCH_SERVE, Program.SGLANG_BENCH_SERVING):
        draft.assume("engine", "the benchmark alone does not say how the server was started")
    if call.program in (Program.VLLM_BENCH_THROUGHPUT, Program.VLLM_BENCH_LATENCY):
        draft.assume("engine.max_num_batched_tokens", "the server's default; offline, vLLM's is larger on most GPUs")
    reading.traffic(answers, draft)
    return preset
