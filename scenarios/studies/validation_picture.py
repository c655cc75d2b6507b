"""The picture of a validation: state over time and distributions of latencies, measured and simulated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, PercentFormatter

from ...sim.columns import Floats
from ...sim.duration_text import duration_text
from ...sim.plots import BLUE, GREY, ORANGE
from .validate import Validation
from .validation_table import NAMES, share_text

Panel = Callable[[Axes, Validation, str], None]

SERIES = {"running": "Running requests", "waiting": "Waiting requests", "kv_usage": "KV cache in use"}
WIDE = 4.0
"""The longest over the median from which on a log axis shows more."""
LATENCIES = ("ttft_s", "tpot_s", "scheduled_to_first_token_s", "e2e_s", "queue_s")


def draw_validation(validation: Validation, path: Path) -> None:
    """Draw it as a PNG; the same validation gives the same bytes."""
    pairs = {} if validation.series is None else validation.series.pairs
    latencies = [name for name in LATENCIES if name in validation.errors][: 6 - len(pairs)]
    panels: list[tuple[Panel, str]] = [(_plot_series, name) for name in pairs]
    panels += [(_plot_latency, name) for name in latencies]
    num_rows = -(-len(panels) // 3)
    figure = Figure(figsize=(13, 0.6 + 3.5 * num_rows), layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12))
    FigureCanvasAgg(figure)
    places = figure.subplots(num_rows, 3, squeeze=False).ravel().tolist()
    figure.suptitle(_title(validation), fontsize=13, fontweight="bold", x=0.02, ha="left")
    for axes, (plot, name) in zip(places, panels, strict=False):
        plot(axes, validation, name)
    for axes in places[len(panels) :]:
        axes.set_axis_off()
    figure.savefig(path, format="png", dpi=110, metadata={"Software": None})


def _title(validation: Validation) -> str:
    scenario = validation.assembly.scenario
    num_scored = int(validation.scored.sum())
    return f"{validation.run.source.name}: measured and simulated\n{scenario.model}, {num_scored} requests compared"


def _plot_series(axes: Axes, validation: Validation, name: str) -> None:
    assert validation.series is not None
    pair, time_s = validation.series.pairs[name], validation.series.time_s
    axes.set_title(SERIES[name], fontsize=11, loc="left")
    axes.set_xlabel("s since the first arrival")
    axes.plot(time_s, pair.measured, color=GREY, linewidth=2.5, alpha=0.7, label="measured")
    axes.plot(time_s, pair.simulated, color=ORANGE, linewidth=1.2, label="simulated")
    axes.set_ylim(0, max(float(pair.measured.max()), float(pair.simulated.max()), 1e-9) * 1.22)
    if name == "kv_usage":
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    correlation = pair.correlation()
    told = "" if correlation is None else f"correlation {correlation:.3f}"
    axes.text(0.98, 0.95, told, transform=axes.transAxes, ha="right", va="top", fontsize=9)
    axes.legend(loc="upper left", frameon=False, fontsize=9)
    _frame(axes)


def _plot_latency(axes: Axes, validation: Validation, name: str) -> None:
    """Cumulated shares; over a log axis where values differ much."""
    measured, simulated = (times.latencies()[name] for times in (validation.measured, validation.simulated))
    known = validation.scored & np.isfinite(measured)
    for values, colour, width, label in ((measured, GREY, 3.0, "measured"), (simulated, BLUE, 1.3, "simulated")):
        ordered = np.maximum(np.sort(values[known]), 1e-6)
        axes.step(ordered, _shares(ordered), where="post", color=colour, linewidth=width, alpha=0.8, label=label)
    if measured[known].max() > WIDE * max(float(np.median(measured[known])), 1e-6):
        axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda seconds, _: duration_text(seconds)))
    axes.xaxis.set_minor_formatter(FuncFormatter(lambda seconds, _: ""))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_ylim(0, 1.02)
    errors = validation.errors[name]
    told = "\n".join(f"{point.upper()} {share_text(errors[point]['error'])}" for point in ("mean", "p50", "p99"))
    axes.text(0.04, 0.95, told, transform=axes.transAxes, va="top", fontsize=9)
    label = NAMES[name] if NAMES[name].isupper() else NAMES[name].capitalize()
    axes.set_title(f"{label}, share of requests", fontsize=11, loc="left")
    axes.legend(loc="lower right", frameon=False, fontsize=9)
    _frame(axes)


def _shares(ordered: Floats) -> Floats:
    return np.arange(1, len(ordered) + 1) / len(ordered)


def _frame(axes: Axes) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(alpha=0.25)
