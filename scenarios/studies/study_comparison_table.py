"""A comparison of two studies as tables for people: one a setting."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from ...sim.duration_text import duration_text
from ..tables import CLOSED_LOOP
from .compare_studies import StudyComparison

FIGURES = (
    *(
        (f"{name.upper()} {point.upper() if point[0] == 'p' else point}", f"{name}_s.{point}")
        for name, point in (
            ("ttft", "mean"),
            ("ttft", "p50"),
            ("ttft", "p99"),
            ("tpot", "mean"),
            ("itl", "p99"),
            ("e2e", "p99"),
        )
    ),
    *((path, path) for path in ("output_tokens_per_s", "requests_per_s", "goodput_rps", "prefix_hit_rate")),
)


def study_comparison_tables(comparison: StudyComparison) -> RenderableType:
    """What differs, then each setting's figures and their differences."""
    parts: list[RenderableType] = [_settings(comparison), *map(_point, comparison["points"])]
    if comparison["a"]["closed_loop"]:
        parts.append(f"[yellow]warning:[/] {CLOSED_LOOP}")
    return Group(*parts)


def _settings(comparison: StudyComparison) -> Table:
    table = _table("What was compared", "", "A", "B")
    for key in ("folder", "preset", "version"):
        table.add_row(key, *(escape(str(comparison[side][key])) for side in ("a", "b")))
    for key, (one, other) in comparison["settings"].items():
        table.add_row(escape(key), escape(str(one)), escape(str(other)))
    return table


def _point(point: dict[str, Any]) -> Table:
    named = ", ".join(f"{key} {value}" for key, value in point["values"].items())
    seeds = f"{len(point['seeds'])} seeds" if len(point["seeds"]) > 1 else "1 seed, so no interval"
    title = escape(f"{named}: {seeds}" if named else seeds) + "; difference is B less A, ± 95 % interval"
    for side, number in point["num_overloaded"].items():
        title += f"\n[yellow]{side.upper()} is overloaded in {number} of {len(point['seeds'])}[/]" if number else ""
    table = _table(title, "", "A", "B", "difference", "±", "")
    for name, path in FIGURES:
        if path in point["figures"]:
            table.add_row(name, *_cells(point["figures"][path], path))
    return table


def _cells(figure: dict[str, Any], path: str) -> Iterator[str]:
    def text(value: float) -> str:
        return duration_text(value) if "_s." in path else f"{value:,.4g}"

    difference, interval = figure["difference"], figure["interval_95"]
    yield text(figure["a"])
    yield text(figure["b"])
    yield ("+" if difference > 0 else "-" if difference < 0 else "") + text(abs(difference))
    yield "-" if interval is None else text((interval[1] - interval[0]) / 2)
    yield "" if interval is None or interval[0] <= 0 <= interval[1] else "sure"


def _table(title: str, *names: str) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in names:
        table.add_column(name, justify="right" if name else "left", overflow="fold")
    return table
