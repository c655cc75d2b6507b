"""A validation as tables for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from ...calibrate.comparison import STATISTICS, Errors
from ...sim.duration_text import duration_text
from .error_budget import Budget
from .validate import Validation

NAMES = {
    "ttft_s": "TTFT",
    "tpot_s": "TPOT",
    "itl_s": "ITL",
    "e2e_s": "E2E",
    "queue_s": "queue",
    "scheduled_to_first_token_s": "scheduled to first token",
}


def validation_tables(validation: Validation) -> RenderableType:
    """Errors of all, of the warm-up, of those that never queued; the series; the budget."""
    run, scored = validation.run, int(validation.scored.sum())
    title = f"{escape(str(run.source))}: {scored} of {len(run.requests)} requests"
    parts: list[RenderableType] = [errors_table(title, validation.errors)]
    if validation.num_never_queued:
        never = f"{validation.num_never_queued} of them that never queued"
        parts.append(errors_table(never, validation.never_queued_errors))
    num_warmup = int((validation.measured.arrival_s < validation.warmup_s).sum())
    if num_warmup:
        warmup = f"Apart: {num_warmup} requests of the warm-up, before {validation.warmup_s:.3g} s"
        parts.append(errors_table(warmup, validation.warmup_errors))
    if validation.cold_start_s:
        parts.append(f"Cold start: the first steps take the host {_seconds(validation.cold_start_s)}\n")
    if validation.fitted is not None:
        parts.append(errors_table("Apart: the requests that the residual was fitted on", validation.fitted_errors))
    if validation.series is not None:
        parts.append(_series_table(validation))
    return Group(*parts, _budget_table(validation.budget), _budget_text(validation.budget))


def errors_table(title: str, errors: Errors) -> Table:
    """Three rows a latency: what was measured, what was simulated, and the error."""
    table = _table(title, "", "", *(statistic.upper() for statistic in STATISTICS))
    for metric, statistics in errors.items():
        for side in ("measured", "simulated"):
            values = (_duration(statistics[statistic][side]) for statistic in STATISTICS)
            table.add_row(NAMES[metric] if side == "measured" else "", side, *values)
        shares = (share_text(statistics[statistic]["error"]) for statistic in STATISTICS)
        table.add_row("", "error", *shares, end_section=True)
    return table


def _series_table(validation: Validation) -> Table:
    assert validation.series is not None
    series = validation.series
    table = _table(f"Over time, {len(series.time_s)} samples", "", "correlation", "mean deviation", "most measured")
    for name, pair in series.pairs.items():
        correlation, is_share = pair.correlation(), name == "kv_usage"
        deviation, most = pair.mean_deviation(), float(pair.measured.max())
        shown = [f"{100 * value:.1f} points" if is_share else f"{value:.3g}" for value in (deviation, most)]
        table.add_row("KV use" if is_share else name, "-" if correlation is None else f"{correlation:.4f}", *shown)
    return table


def _budget_table(budget: Budget) -> Table:
    table = _table("Errors of the means", "", "replay", "step time", "left", "arrival")
    for metric, parts in budget.parts.items():
        table.add_row(NAMES[metric], *(share_text(parts[name]) for name in ("replay", "step_time", "left", "arrival")))
    return table


def _budget_text(budget: Budget) -> str:
    if budget.constant_s is None:
        return "step time is not known: there is no TPOT"
    constant = f"{1e3 * budget.constant_s:+.3g} ms"
    return f"replay = step time (put right by {constant} a step) + left; without the measured arrivals, arrival on top"


def _table(title: str, *names: str) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for index, name in enumerate(names):
        table.add_column(name, justify="right" if index and name else "left", overflow="fold")
    return table


def _duration(value: float | None) -> str:
    return "-" if value is None else duration_text(value)


def _seconds(times_s: Sequence[float]) -> str:
    return ", ".join(f"{time_s:.3g} s" for time_s in times_s)


def share_text(value: float | None) -> str:
    """A share as a signed percentage."""
    return "-" if value is None else f"{100 * value:+.1f}%"
