"""The picture of a cache study: hit rate against size, a line a policy, below the bound."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter, PercentFormatter

from ...sim.plots import BLUE, GREEN, GREY, ORANGE, RED
from ..writable import making
from .cache_replay import BELADY

COLOURS = (BLUE, RED, GREEN, ORANGE, "#CC79A7", "#56B4E9")
"""Okabe and Ito's, which the colour-blind can tell apart; then again with other lines and marks."""
LINES = (("-", "o"), ("--", "s"), (":", "^"))


def draw_cache(report: Mapping[str, Any], path: Path) -> None:
    """Write the picture as a PNG; the same figures give the same bytes. Raises ScenarioError where it cannot."""
    figure = Figure(figsize=(9, 5.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    _plot_lines(axes, report)
    limit = report["unlimited"]["block_hit_rate"]
    axes.axhline(limit, color=GREY, linewidth=1, linestyle=(0, (1, 2)), label=f"unlimited: {limit:.1%}")
    _dress(axes, report)
    with making(path):
        figure.savefig(path, format="png", dpi=120, metadata={"Software": None})


def _plot_lines(axes: Axes, report: Mapping[str, Any]) -> None:
    lines: dict[str, list[tuple[int, float]]] = {}
    for point in report["points"]:
        lines.setdefault(point["eviction"], []).append((point["blocks"], point["block_hit_rate"]))
    for index, (label, points) in enumerate(lines.items()):
        sizes, rates = zip(*points, strict=True)
        line, mark = LINES[index // len(COLOURS) % len(LINES)]
        if label == BELADY:
            axes.plot(sizes, rates, color="black", linestyle=(0, (5, 3)), label="belady: no policy finds more")
        else:
            colour = COLOURS[index % len(COLOURS)]
            axes.plot(sizes, rates, color=colour, linestyle=line, marker=mark, markersize=5, linewidth=2, label=label)


def _dress(axes: Axes, report: Mapping[str, Any]) -> None:
    name = Path(report["source"]).name
    axes.set_title(f"What a prefix cache finds: {name}, {report['num_requests']:,} requests", fontsize=12, loc="left")
    axes.set_xscale("log")
    axes.set_xlabel(f"cache, blocks of {report['block_tokens']:,} tokens")
    axes.set_ylabel("hit rate, share of the prompts' blocks")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: f"{size:,.0f}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_ylim(bottom=0)
    axes.grid(True, which="major", color="#DDDDDD", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
