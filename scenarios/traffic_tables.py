"""A traffic's figures as tables for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from .tables import MISSING, POINTS


def print_traffic(report: Mapping[str, Any], console: Console) -> None:
    """Lengths, arrivals and sharing, and what a reader must know before trusting them."""
    console.print(_lengths(report))
    console.print(_figures(report))
    if report["num_refused"]:
        console.print(f"[yellow]warning:[/] {report['num_refused']:,} requests are refused and left out")
    if report["num_following"]:
        console.print(
            f"[yellow]note:[/] {report['num_following']:,} requests follow from the end of others; here service takes "
            "no time, so they come sooner than in a run"
        )


def _lengths(report: Mapping[str, Any]) -> Table:
    title = f"{report['scenario']}: {report['num_requests']:,} requests"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    for name, _ in POINTS:
        table.add_column(name, justify="right", no_wrap=True)
    for name, key in (("prompt, tokens", "prompt_tokens"), ("output, tokens", "output_tokens")):
        table.add_row(name, *(_tokens(report[key][point]) for _, point in POINTS))
    distances = report["reuse_distance_blocks"]
    cells = (_tokens(distances[point]) if point in distances else "" for _, point in POINTS)
    table.add_row("reuse distance, blocks", *cells)
    return table


def _figures(report: Mapping[str, Any]) -> Table:
    table = Table(box=box.SIMPLE, show_header=False, pad_edge=False)
    for justify in ("left", "right", "left", "right"):
        table.add_column(justify=justify, no_wrap=True)
    rate = MISSING if report["rate"] is None else f"{report['rate']:.4g}"
    cv = MISSING if report["arrival_cv"] is None else f"{report['arrival_cv']:.3g}"
    table.add_row("duration, s", f"{report['duration_s']:,.5g}", "block, tokens", f"{report['block_tokens']:,}")
    shared = _share(report["shared_prefix_share"])
    table.add_row("requests/s", rate, "requests that find a prefix", shared)
    table.add_row("arrival CV", cv, "ideal hit rate, of tokens", _share(report["ideal_hit_rate"]))
    tokens = f"{report['total_prompt_tokens']:,}"
    table.add_row("prompt tokens", tokens, "ideal hit rate, of blocks", _share(report["block_hit_rate"]))
    return table


def _tokens(value: float | None) -> str:
    """A number of tokens or blocks; a tenth more where there are few."""
    if value is None:
        return MISSING
    return f"{value:,.0f}" if value >= 100 or value == round(value) else f"{value:.1f}"


def _share(value: float | None) -> str:
    return MISSING if value is None else f"{value:.1%}"
