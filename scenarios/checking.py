"""`llmsim check`: what can be said of a scenario without running it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

from rich.console import Console
from rich.markup import escape

from ..policies.core.memory import concurrency_note
from ..policies.core.request import Arrival
from .assembly import Assembly
from .tables import memory_table
from .workloads.building import build_workload

NUM_SAMPLED = 1000
"""Requests looked at for the mean length."""


def check_report(assembly: Assembly, warn: Callable[[str], None]) -> dict[str, Any]:
    """Memory, and how much concurrency it gives the scenario's first requests. Raises ScenarioError for a bad trace."""
    workload = build_workload(assembly.scenario, warn)
    core = assembly.core()
    held, num_refused, num_seen = [], 0, 0
    for arrival in islice(workload.arrivals(), NUM_SAMPLED):
        num_seen += 1
        if arrival.refusal is None and core.refusal(arrival.request) is None:
            held.append(_held_tokens(assembly, arrival))
        else:
            num_refused += 1
    budget = assembly.budget
    mean = round(sum(held) / len(held)) if held else None
    return {
        "scenario": assembly.scenario.name,
        "preset": assembly.engine.preset,
        "memory": assembly.memory(),
        "max_concurrency_at_max_model_len": budget.max_concurrency(assembly.config.max_model_len),
        "mean_request_tokens": mean,
        "max_concurrency_at_mean": budget.max_concurrency(mean) if mean else None,
        "num_sampled": num_seen,
        "num_refused": num_refused,
        "note": concurrency_note(budget, assembly.config.max_num_seqs, mean) if mean else None,
    }


def _held_tokens(assembly: Assembly, arrival: Arrival) -> int:
    """Tokens that a request's memory is for when it ends: what it has become, or what it has reserved."""
    request = arrival.request
    is_paged = assembly.config.kv_reservation == "paged"
    return request.prompt.num_tokens + (arrival.output.length if is_paged else request.max_tokens)


def print_check(assembly: Assembly, report: dict[str, Any], console: Console) -> None:
    """The memory table and, in words, how many requests it holds."""
    scenario, engine = assembly.scenario, assembly.engine
    gpus = f"{scenario.hardware.tensor_parallel} x " if scenario.hardware.tensor_parallel > 1 else ""
    console.print(
        f"{scenario.name}: {scenario.model} on {gpus}{scenario.hardware.gpu or assembly.gpu.name}, {engine.preset}"
    )
    console.print(memory_table(report["memory"]))
    console.print(
        f"A request of full length ({assembly.config.max_model_len:,} tokens) fits "
        f"{report['max_concurrency_at_max_model_len']:.2f} times."
    )
    is_paged = assembly.config.kv_reservation == "paged"
    provided = "without sharing prefixes" if is_paged else "without holes between them"
    if report["mean_request_tokens"]:
        console.print(
            f"The first {report['num_sampled']:,} requests {'have' if is_paged else 'reserve'} "
            f"{report['mean_request_tokens']:,} tokens on average: "
            f"{report['max_concurrency_at_mean']:.1f} of that length fit at once, {provided}."
        )
    if report["num_refused"]:
        console.print(f"[yellow]warning:[/] {report['num_refused']:,} of them will be refused")
    if report["note"]:
        console.print(f"[yellow]note:[/] {escape(report['note'])} ({provided})")
