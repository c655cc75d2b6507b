"""`llmsim describe`: what a scenario asks of the engine, in plain words with the numbers that will hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding

from . import sglang_words, vllm_words
from .assembly import Assembly
from .policy_words import number, policy_name, policy_words
from .preset_policies import departures
from .tables import memory_table
from .traffic_words import traffic_words

Words = Callable[[Assembly], Iterator[str]]


class PresetWords(NamedTuple):
    """What a preset's own keys say, by question."""

    batch: Words
    prefill: Words
    cache: Words
    pressure: Words


PRESETS = {
    "sglang": PresetWords(sglang_words.batch, sglang_words.prefill, sglang_words.cache, sglang_words.pressure),
    "vllm": PresetWords(vllm_words.batch, vllm_words.prefill, vllm_words.cache, vllm_words.pressure),
}
"""By the preset's name without its version."""

QUESTIONS = {
    "batch": "How is a batch formed?",
    "prefill": "How is a long prefill treated?",
    "cache": "How is KV kept and reused?",
    "pressure": "Who waits, and who gives way when memory is short?",
    "traffic": "Under which traffic are the figures measured?",
}

CACHE = {
    "cold": "The run begins with an empty cache (run.cache: cold).",
    "warm": "The run begins with what a pass of the same traffic, served before, has left in it (run.cache: warm).",
}


def describe(assembly: Assembly) -> dict[str, Any]:
    """The answers, a list of sentences each, and what they are about; strict JSON."""
    scenario, own = assembly.scenario, departures(assembly.scenario)
    return {
        "scenario": scenario.name,
        "model": scenario.model,
        "gpu": scenario.hardware.gpu,
        "tensor_parallel": scenario.hardware.tensor_parallel,
        "preset": assembly.engine.preset,
        "answers": {key: {"question": QUESTIONS[key], "sentences": list(_ANSWERS[key](assembly))} for key in QUESTIONS},
        "policies": {
            kind: {
                "spec": spec,
                "says": policy_words(kind, spec, assembly.folders),
                "is_the_presets_own": kind not in own,
            }
            for kind, spec in assembly.policies.items()
        },
        "memory": assembly.memory(),
        "max_concurrency_at_max_model_len": assembly.budget.max_concurrency(assembly.config.max_model_len),
    }


def print_description(description: dict[str, Any], console: Console) -> None:
    """Questions with their answers, then the memory table."""
    gpus = f"{description['tensor_parallel']} x " if description["tensor_parallel"] > 1 else ""
    head = f"{description['scenario']}: {description['model']} on {gpus}{description['gpu']}, {description['preset']}"
    console.print(f"[bold]{escape(head)}[/]")
    for answer in description["answers"].values():
        console.print(f"\n[bold]{answer['question']}[/]")
        for sentence in answer["sentences"]:
            console.print(Padding(escape(sentence), (0, 0, 0, 2)))
    console.print()
    console.print(memory_table(description["memory"]))


def _words(assembly: Assembly) -> PresetWords:
    return PRESETS[assembly.engine.preset.partition("@")[0]]


def _says(assembly: Assembly, kind: str) -> str:
    """A policy's sentence under its name, marked where the preset would do something else."""
    spec = assembly.policies[kind]
    other = "" if kind not in departures(assembly.scenario) else f", not what {assembly.engine.preset} does"
    return f"{kind} {policy_name(spec)}{other}: {policy_words(kind, spec, assembly.folders)}"


def _batch(assembly: Assembly) -> Iterator[str]:
    yield _says(assembly, "batching")
    yield from _words(assembly).batch(assembly)


def _prefill(assembly: Assembly) -> Iterator[str]:
    yield from _words(assembly).prefill(assembly)
    yield _says(assembly, "chunk_size")


def _cache(assembly: Assembly) -> Iterator[str]:
    yield from _words(assembly).cache(assembly)
    if assembly.config.enable_prefix_caching:
        yield _says(assembly, "eviction")
        yield CACHE[assembly.scenario.run.cache]
    longest = assembly.config.max_model_len
    yield (
        f"A request of {number(longest)} tokens, the longest, fits "
        f"{assembly.budget.max_concurrency(longest):,.2f} times."
    )


def _pressure(assembly: Assembly) -> Iterator[str]:
    yield _says(assembly, "scheduling")
    yield from _words(assembly).pressure(assembly)
    if assembly.config.kv_reservation == "paged":
        yield _says(assembly, "preemption")


_ANSWERS: dict[str, Words] = {
    "batch": _batch,
    "prefill": _prefill,
    "cache": _cache,
    "pressure": _pressure,
    "traffic": lambda assembly: traffic_words(assembly.scenario),
}
