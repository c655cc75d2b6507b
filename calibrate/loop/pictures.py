"""The pictures of a loop's report: latencies, step times, policies; measured and simulated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, PercentFormatter

from ...sim.columns import Floats
from ...sim.cost_model.correction import Kind
from ...sim.duration_text import duration_text
from ...sim.plots import BLUE, GREY, ORANGE
from .recorded import PricedSteps
from .report import percent

TITLES = {
    "ttft_s": "Time to first token (TTFT)",
    "tpot_s": "Time per output token (TPOT)",
    "itl_s": "Time between tokens (ITL)",
    "e2e_s": "From arrival to last token (E2E)",
}
BAND = 0.05
WIDE = 8.0
"""From here on, largest over smallest, an axis of times is logarithmic."""
COLUMNS = 3
"""Of panels."""
Samples = Mapping[str, Floats]
"""By metric, every request's, or every gap's, in seconds."""


def draw_latencies(repeats: Sequence[Samples], simulated: Samples, latencies: Mapping[str, Any], path: Path) -> None:
    """Cumulated shares of each latency, of every repeat and of the simulation."""
    figure = _figure(11, 7)
    for axes, (metric, title) in zip(figure.subplots(2, 2).ravel(), TITLES.items(), strict=True):
        for index, run in enumerate(repeats):
            _cumulate(axes, run[metric], GREY, 2.6, None if index else "measured, each repeat")
        _cumulate(axes, simulated[metric], BLUE, 1.3, "simulated")
        errors = [f"{name} {percent(latencies[metric][name]['error'])}" for name in ("mean", "p50", "p99")]
        axes.set_title(f"{title}\nerror: {', '.join(errors)}", fontsize=10, loc="left")
        _scale_times(axes, np.concatenate([run[metric] for run in (*repeats, simulated)]))
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
        axes.legend(loc="lower right", frameon=False, fontsize=9)
    _save(figure, path)


def draw_steps(
    steps: Mapping[Kind, PricedSteps], corrected: Mapping[Kind, tuple[PricedSteps, PricedSteps]], path: Path
) -> None:
    """Above, every step's price over its time; below, errors of unseen steps without the correction and with it."""
    kinds = list(steps)
    figure = _figure(1.0 + 3.8 * len(kinds), 7)
    grid = figure.subplots(2, len(kinds), squeeze=False)
    for column, kind in enumerate(kinds):
        _scatter(grid[0][column], kind, steps[kind])
        if kind in corrected:
            _errors(grid[1][column], *corrected[kind])
        else:
            grid[1][column].set_axis_off()
    grid[1][0].set_ylabel("share of the other run's steps")
    _save(figure, path)


def draw_policies(ranked: Sequence[Mapping[str, Any]], path: Path) -> None:
    """A panel a statistic: each policy as measured, with the noise as a bar, and as simulated."""
    num_rows = -(-len(ranked) // COLUMNS)
    names = list(ranked[0]["measured"])
    figure = _figure(12, num_rows * (1.4 + 0.3 * len(names)))
    panels = figure.subplots(num_rows, COLUMNS, sharey=True, squeeze=False).ravel()
    for axes, one in zip(panels, ranked, strict=False):
        _rank(axes, one, names)
    for axes in panels[len(ranked) :]:
        axes.set_axis_off()
    empty = panels[len(ranked)] if len(ranked) < len(panels) else None
    if empty is None:
        panels[0].legend(loc="best", frameon=False, fontsize=8)
    else:
        empty.legend(*panels[0].get_legend_handles_labels(), loc="upper left", frameon=False, fontsize=9)
    _save(figure, path)


def _rank(axes: Axes, one: Mapping[str, Any], names: Sequence[str]) -> None:
    places = np.arange(len(names))[::-1]
    sides = ([one[side][name] for name in names] for side in ("measured", "simulated"))
    measured, simulated = (np.array(side, np.float64) for side in sides)  # None is NaN, and not drawn
    reach = measured * one["noise"] / 2
    axes.errorbar(measured, places, xerr=reach, fmt="o", color=GREY, capsize=3, markersize=7, label="measured, noise")
    axes.plot(simulated, places, "x", color=BLUE, markersize=8, markeredgewidth=2, label="simulated")
    axes.set_title(f"{one['metric'].removesuffix('_s').upper()}, {one['statistic']}", fontsize=10, loc="left")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda seconds, _: duration_text(seconds)))
    axes.tick_params(axis="x", labelsize=8, rotation=30)
    axes.grid(axis="y", alpha=0.3)
    axes.set_yticks(places, names)


def _scale_times(axes: Axes, values: Floats) -> None:
    """A logarithmic axis where times span much, else a plain one, whose ticks are nearer to each other."""
    known = values[values > 0]
    if len(known) and known.max() > WIDE * known.min():
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_minor_formatter(FuncFormatter(lambda *_: ""))
    else:
        axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda seconds, _: duration_text(seconds)))


def _cumulate(axes: Axes, values: Floats, colour: str, width: float, label: str | None) -> None:
    ordered = np.sort(values[values > 0])
    shares = np.arange(1, len(ordered) + 1) / max(len(ordered), 1)
    axes.step(ordered, shares, where="post", color=colour, linewidth=width, alpha=0.7, label=label)


def _scatter(axes: Axes, kind: Kind, steps: PricedSteps) -> None:
    errors = steps.errors()
    axes.plot(steps.measured_s * 1e3, steps.priced_s * 1e3, ".", color=BLUE, alpha=0.35, markersize=4)
    ends = np.array([steps.measured_s.min(), steps.measured_s.max()]) * 1e3
    axes.plot(ends, ends, color=GREY, linewidth=1)
    axes.fill_between(ends, ends * (1 - BAND), ends * (1 + BAND), color=GREY, alpha=0.15, linewidth=0)
    told = f"median error {errors.median:.1%}, P95 {errors.p95:.1%}, bias {errors.bias:+.1%}"
    axes.set_title(f"{errors.num_steps:,} {kind} steps (grey: within {BAND:.0%})\n{told}", fontsize=10, loc="left")
    axes.set_xlabel("ms on the device")
    axes.set_ylabel("ms by the profile")


def _errors(axes: Axes, without: PricedSteps, corrected: PricedSteps) -> None:
    both = [steps.priced_s / steps.measured_s - 1 for steps in (without, corrected)]
    edge = max(float(np.percentile(np.abs(np.concatenate(both)), 98)), 0.01)
    bins = np.linspace(-edge, edge, 41)
    for errors, colour, label in zip(both, (ORANGE, BLUE), ("profile", "and correction"), strict=True):
        weights = np.full(len(errors), 1 / len(errors))
        axes.hist(np.clip(errors, -edge, edge), bins.tolist(), weights=weights, color=colour, alpha=0.55, label=label)
    axes.axvline(0, color=GREY, linewidth=1)
    axes.xaxis.set_major_formatter(PercentFormatter(1.0))
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.set_xlabel("priced / measured - 1, another seed\n(bars at the ends: all beyond)")
    axes.legend(frameon=False, fontsize=9)


def _figure(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1))
    FigureCanvasAgg(figure)
    return figure


def _save(figure: Figure, path: Path) -> None:
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, format="png", dpi=100, metadata={"Software": None})
