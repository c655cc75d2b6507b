"""A run's summary as tables for people, 80 columns wide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.table import Table

from ..sim.metrics import DATA_SHEET, DEVICE, Summary, headline

MISSING = "-"
LATENCIES = (
    ("TTFT", "ttft_s"),
    ("TPOT", "tpot_s"),
    ("ITL", "itl_s"),
    ("E2E", "e2e_s"),
    ("queue", "queue_s"),
)
POINTS = (("mean", "mean"), ("P50", "p50"), ("P90", "p90"), ("P95", "p95"), ("P99", "p99"), ("max", "max"))
MEMORY = (
    ("weights", "weights_bytes"),
    ("KV cache", "kv_bytes"),
    ("activations", "activations_bytes"),
    ("runtime buffers", "buffers_bytes"),
    ("budget", "budget_bytes"),
)
UNITS = (("h", 10_000.0, 1 / 3600), ("s", 1.0, 1.0), ("ms", 0.0, 1000.0))
"""Unit of a row, the mean in seconds from which it is used, and units a second."""
GIB = 1 << 30
CLOSED_LOOP = (
    "a closed loop: clients waited for their answers, so the request rate is what the engine let them send, "
    "and latencies say nothing about traffic that does not wait"
)


def print_summary(summary: Summary, console: Console | None = None) -> None:
    """Print what `summary_tables` gives, on stderr unless told otherwise."""
    (console or Console(stderr=True, highlight=False)).print(summary_tables(summary))


def summary_tables(summary: Summary) -> RenderableType:
    """The latency table, the engine's figures, and warnings in words."""
    basis = [f"step time: {text}"] if (text := step_time_basis(summary)) else []
    warnings = [f"[yellow]warning:[/] {text}" for text in warnings_of(summary)]
    finished = f"{summary['num_requests']['finished']:,} requests finished"
    swapped = [swap_sentence(summary["swaps"])] if "swaps" in summary else []
    tables = (latency_table(summary), engine_table(summary))
    return Group(escape(headline(summary)), finished, *tables, *basis, *swapped, *warnings)


def latency_table(summary: Summary) -> Table:
    """Mean, percentiles, the P99's 95 % interval and maximum of each latency, each row in one unit."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    for name, _ in POINTS:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("± P99", justify="right", no_wrap=True)
    table.add_column("")
    for name, key in LATENCIES:
        table.add_row(name, *_latency_cells(summary[key], summary["intervals_95"].get(key, {}).get("p99")))
    return table


def engine_table(summary: Summary) -> Table:
    """Throughput, cache, queue and use of the GPU, two figures a line."""
    table = Table(box=box.SIMPLE, show_header=False, pad_edge=False)
    for justify in ("left", "right", "left", "right"):
        table.add_column(justify=justify, no_wrap=True)
    left, right = list(_service_figures(summary)), list(_engine_figures(summary))
    for a, b in zip_longest(left, right, fillvalue=("", "")):
        table.add_row(*a, *b)
    return table


def swap_sentence(swaps: Mapping[str, Any]) -> str:
    """What was swapped to the host and back, for each GPU."""
    full = f"; {swaps['num_host_full']:,} more found the host full and recomputed" if swaps["num_host_full"] else ""
    share = "" if swaps["time_share"] is None else f", {_percent(swaps['time_share'])} of the time"
    return (
        f"swapped to the host {swaps['num_out']:,} times ({swaps['out_bytes'] / GIB:.2f} GiB), back"
        f" {swaps['num_in']:,} times ({swaps['in_bytes'] / GIB:.2f} GiB){share};"
        f" at most {swaps['peak_host_bytes'] / GIB:.2f} of {swaps['host_bytes'] / GIB:.2f} GiB there{full}"
    )


def memory_table(memory: Mapping[str, int]) -> Table:
    """How the GPU's memory is used; `memory` as in the summary."""
    table = Table(title="GPU memory", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("", "GiB", "of budget"):
        table.add_column(name, justify="right" if name else "left")
    for name, key in MEMORY:
        table.add_row(name, f"{memory[key] / GIB:.2f}", _percent(memory[key] / memory["budget_bytes"]))
    table.add_section()
    table.add_row("KV blocks", f"{memory['num_blocks']:,}", "")
    return table


def warnings_of(summary: Summary) -> list[str]:
    """What a reader must know before trusting the figures, a sentence each."""
    counts, found = summary["num_requests"], []
    if summary["overloaded"]:
        found.append(
            f"overloaded: the queue grew by {summary['queue_slope_per_s']:.3g} requests/s while load was on, "
            "so latencies depend on how long the run was"
        )
    if summary["closed_loop"]:
        found.append(CLOSED_LOOP)
    if lost := [f"{counts[status]:,} {status}" for status in ("refused", "aborted", "unfinished") if counts[status]]:
        found.append(f"{', '.join(lost)} of {sum(counts.values()):,} requests; latencies leave them out")
    if not sum(counts.values()) and summary["num_warmup_requests"]:
        found.append(f"all {summary['num_warmup_requests']:,} requests were sent during the warm-up: none is measured")
    if summary["num_extrapolated_steps"]:
        share = _percent(summary["num_extrapolated_steps"] / summary["num_steps"])
        found.append(f"{share} of the steps lie outside the measured grid of the cost model")
    return found


def step_time_basis(summary: Summary) -> str | None:
    """What the steps' device time rests on, in words; None where it is the data sheet alone."""
    shares = summary["step_time_from"]
    if summary["priced_by"] in (DATA_SHEET, DEVICE):
        return None
    return ", ".join(f"{_percent(share)} {name.replace('_', ' ')}" for name, share in shares.items())


def _service_figures(summary: Summary) -> Iterable[tuple[str, str]]:
    windowed = summary["windowed"]
    yield "requests/s", _number(summary["requests_per_s"])
    yield "output tokens/s", _number(summary["output_tokens_per_s"])
    yield "total tokens/s", _number(summary["total_tokens_per_s"])
    yield (
        "goodput, requests/s",
        "no SLO" if summary["goodput_rps"] is None else _number(summary["goodput_rps"]),
    )
    drains = windowed["end_s"] < windowed["start_s"] + summary["duration_s"]
    yield f"{'under load' if drains else 'whole run'}, requests/s", _number(windowed["requests_per_s"])
    yield "  and output tokens/s", _number(windowed["output_tokens_per_s"])
    yield "duration, s", _number(summary["duration_s"])
    yield "  of which drain, s", _number(summary["drain_s"])
    loss = summary["fragmentation"]
    if loss["num_refused_admissions"] is not None:
        yield "refused admissions", _number(loss["num_refused_admissions"])
        yield "  of which for holes", _percent(loss["scattered_share"])


def _engine_figures(summary: Summary) -> Iterable[tuple[str, str]]:
    use = summary["utilization"]
    yield "prefix hit rate", _percent(summary["prefix_hit_rate"])
    yield "KV use, mean / max", _both(summary["kv_usage"], _percent)
    yield "running, mean / max", _both(summary["running"], _number)
    yield "waiting, mean / max", _both(summary["waiting"], _number)
    yield "preemptions", f"{summary['num_preemptions']:,}"
    yield "steps", f"{summary['num_steps']:,}"
    yield "GPU busy", _percent(use["busy"])
    yield "FLOPs / bandwidth", f"{_percent(use['flops'])} / {_percent(use['bandwidth'])}"
    for kind in ("internal", "external"):
        if summary["fragmentation"][kind]["mean"] is not None:
            yield f"{kind} frag., mean / max", _both(summary["fragmentation"][kind], _percent)


def _latency_cells(figures: Mapping[str, float | None], p99_s: list[float] | None) -> list[str]:
    mean = figures["mean"]
    if mean is None:
        return [*(MISSING for _ in POINTS), "", ""]
    unit, scale = next((unit, scale) for unit, least, scale in UNITS if mean >= least)
    half_width = "" if p99_s is None else _number((p99_s[1] - p99_s[0]) / 2 * scale)
    return [*(_number(_scaled(figures[key], scale)) for _, key in POINTS), half_width, unit]


def _scaled(value: float | None, scale: float) -> float | None:
    return None if value is None else value * scale


def _number(value: float | None) -> str:
    """Three digits that matter, no exponent; integers in full."""
    if value is None:
        return MISSING
    rounded = float(f"{value:.3g}")
    if isinstance(value, int) or rounded == 0 or abs(rounded) >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(rounded) < 10 else f"{value:.1f}"


def _percent(value: float | None) -> str:
    if value is None:
        return MISSING
    return f"{value:.0%}" if value >= 0.9995 else f"{value:.1%}"


def _both(figures: Mapping[str, Any], render: Any) -> str:
    return f"{render(figures['mean'])} / {render(figures['max'])}"
