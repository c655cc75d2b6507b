"""The picture of a traffic: lengths, arrivals over time, and what a cache of each size would find."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import PercentFormatter

from ..sim.columns import Floats, Ints
from ..sim.plots import BLUE, GREEN, ORANGE, RED
from .traffic_report import Traffic
from .writable import making

NUM_BINS = 120


def draw_traffic(traffic: Traffic, path: Path) -> None:
    """Write the picture as a PNG; the same traffic gives the same bytes. Raises ScenarioError where it cannot."""
    figure = Figure(figsize=(11, 7), layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12))
    FigureCanvasAgg(figure)
    (lengths, arrivals), (tokens, cache) = figure.subplots(2, 2)
    num = len(traffic.times_s)
    figure.suptitle(f"{traffic.name}: {num:,} requests", fontsize=13, fontweight="bold", x=0.02, ha="left")
    _plot_lengths(lengths, traffic)
    _plot_over_time(arrivals, traffic, np.ones(num), BLUE)
    _dress(arrivals, "Arrivals", "requests/s")
    _plot_over_time(tokens, traffic, traffic.prompt_tokens, ORANGE)
    _dress(tokens, "Prompt tokens offered", "tokens/s")
    _plot_cache(cache, traffic)
    with making(path):
        figure.savefig(path, format="png", dpi=120, metadata={"Software": None})


def _plot_lengths(axes: Axes, traffic: Traffic) -> None:
    named = (("prompt", traffic.prompt_tokens, BLUE, "-"), ("output", traffic.output_tokens, GREEN, "--"))
    for name, tokens, colour, line in named:
        if len(tokens):
            values, counts = np.unique(tokens, return_counts=True)
            shares = np.cumsum(counts) / len(tokens)
            label = f"{name} (mean {tokens.mean():,.0f})"
            axes.step(values, shares, where="post", color=colour, linestyle=line, linewidth=2, label=label)
    axes.set_xscale("log")
    axes.set_xlabel("tokens")
    axes.set_ylim(0, 1.02)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    if axes.lines:
        axes.legend(loc="best", frameon=False)
    _dress(axes, "Lengths, cumulated", "share of requests")


def _plot_over_time(axes: Axes, traffic: Traffic, weights: Floats | Ints, colour: str) -> None:
    """What comes per second, in 120 bins."""
    times_s = traffic.times_s
    end_s = float(times_s.max()) if len(times_s) else 0.0
    edges_s = np.linspace(0, end_s or 1.0, NUM_BINS + 1)
    sums, _ = np.histogram(times_s, edges_s, weights=weights)
    axes.stairs(sums / np.diff(edges_s), edges_s, color=colour, fill=True, alpha=0.6)
    axes.set_xlim(0, edges_s[-1])
    axes.set_ylim(bottom=0)
    axes.set_xlabel("time, s")


def _plot_cache(axes: Axes, traffic: Traffic) -> None:
    capacities = traffic.capacities()
    rates = traffic.hit_rates(capacities)
    axes.plot(capacities, rates, color=RED, linewidth=2)
    axes.axhline(rates[-1], color=RED, linewidth=1, linestyle=(0, (4, 3)), label=f"without end: {rates[-1]:.1%}")
    axes.set_xscale("log")
    axes.set_xlabel(f"cache, blocks of {traffic.block_tokens:,} tokens")
    axes.set_ylim(0, 1.02)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.legend(loc="lower right", frameon=False)
    _dress(axes, "What an LRU cache finds, one request after another", "share of prompt blocks")


def _dress(axes: Axes, title: str, label: str) -> None:
    axes.set_title(title, fontsize=12, loc="left")
    axes.set_ylabel(label)
    axes.grid(True, which="major", color="#DDDDDD", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
