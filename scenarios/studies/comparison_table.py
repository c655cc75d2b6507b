"""A comparison as tables for people."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from ...sim.duration_text import duration_text
from ..tables import CLOSED_LOOP
from .compare import LATENCIES, SHOWN, Comparison


def comparison_tables(comparison: Comparison) -> RenderableType:
    """What differs, both sides' figures, and the paired differences."""
    closed = comparison["a"]["closed_loop"] or comparison["b"]["closed_loop"]
    warnings = [f"[yellow]warning:[/] {CLOSED_LOOP}"] if closed else []
    return Group(_settings(comparison), _figures(comparison), _paired(comparison), *warnings)


def _settings(comparison: Comparison) -> Table:
    a, b = comparison["a"], comparison["b"]
    table = _table("What was compared", "", "A", "B")
    for key in ("folder", "preset", "version", "ran_on", "max_tokens"):
        table.add_row(key, *(escape(str(side[key])) for side in (a, b)))
    for key, (one, other) in comparison["settings"].items():
        if a["preset"] == b["preset"] or not _of_one_engine(key, one, other):
            table.add_row(escape(key), escape(str(one)), escape(str(other)))
    return table


def _of_one_engine(key: str, one: object, other: object) -> bool:
    """Whether only one of two engines has the key, which the presets tell already."""
    return key.startswith("engine.") and (one is None or other is None)


def _figures(comparison: Comparison) -> Table:
    table = _table("Each run", "", "A", "B")
    for key in SHOWN:
        table.add_row(key, *(_number(comparison[side][key]) for side in ("a", "b")))
    return table


def _paired(comparison: Comparison) -> Table:
    title = f"{comparison['num_pairs']:,} requests that both measured; difference is B less A, ± 95 % interval"
    table = _table(title, "", "A P50", "B P50", "A P99", "B P99", "difference", "±", "B lower")
    for name in LATENCIES:
        figures = comparison[name]
        points = [figures[side][point] for point in ("p50", "p99") for side in ("a", "b")]
        difference = figures["difference"]
        interval, share = difference["mean_interval_95"], difference["share_lower"]
        half_width = "-" if interval is None else duration_text((interval[1] - interval[0]) / 2)
        cells = [*map(_duration, points), _signed(difference["mean"]), half_width]
        table.add_row(name.removesuffix("_s").upper(), *cells, "-" if share is None else f"{share:.0%}")
    return table


def _table(title: str, *names: str) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in names:
        table.add_column(name, justify="right" if name else "left", overflow="fold")
    return table


def _number(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else f"{value:,.4g}"


def _duration(value: float | None) -> str:
    return "-" if value is None else duration_text(value)


def _signed(value: float | None) -> str:
    if value is None:
        return "-"
    return ("+" if value > 0 else "-" if value < 0 else "") + duration_text(abs(value))
