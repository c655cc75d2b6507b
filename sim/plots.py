"""The picture of a run: latency distributions, and the queue and the KV cache over time."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import fill
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, PercentFormatter

from .columns import Floats, Ints
from .duration_text import duration_text
from .metrics import Summary, headline
from .timeline import Timeline

# Okabe and Ito's palette: colour-blind readers tell these apart as well.
BLUE, ORANGE, GREEN, RED, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#666666"
CDF_POINTS = 1000
TITLE_CHARACTERS = 95
"""As many as stand in one line of the title; departures from the preset take more."""
STEP_COLUMNS = ("start_s", "duration_s", "host_s", "num_running", "num_waiting", "free_blocks", "num_preempted")


class ResultFrames(NamedTuple):
    """What the picture needs of a result."""

    summary: Summary
    requests: pd.DataFrame
    steps: pd.DataFrame
    gaps: pd.DataFrame

    @classmethod
    def read(cls, folder: Path) -> ResultFrames:
        """Out of a result folder."""
        return cls(
            json.loads((folder / "summary.json").read_text(encoding="utf-8")),
            pd.read_parquet(folder / "requests.parquet", columns=["sent_s", "first_token_s", "status"]),
            pd.read_parquet(folder / "steps.parquet", columns=list(STEP_COLUMNS)),
            pd.read_parquet(folder / "itl.parquet"),
        )


def plot_result(result: Path | ResultFrames, path: Path) -> None:
    """Draw a result (a folder, or what was read of it) as a PNG; the same result gives the same bytes."""
    frames = result if isinstance(result, ResultFrames) else ResultFrames.read(result)
    summary = frames.summary
    figure = Figure(figsize=(11, 7), layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12))
    FigureCanvasAgg(figure)
    (ttft, itl), (queue, cache) = figure.subplots(2, 2)
    figure.suptitle(title(summary), fontsize=13, fontweight="bold", x=0.02, ha="left")
    _plot_ttft(ttft, frames)
    _plot_itl(itl, frames)
    timeline = Timeline(frames.steps, summary["windowed"]["end_s"])
    _plot_queue(queue, timeline)
    _plot_cache(cache, timeline, summary["usable_blocks"])
    for axes in (queue, cache):
        _mark_load_window(axes, timeline, summary)
    figure.savefig(path, format="png", dpi=120, metadata={"Software": None})


def title(summary: Summary) -> str:
    """What ran and how much it served, in lines that fit the picture."""
    rate = summary["requests_per_s"] or 0.0
    tokens = summary["output_tokens_per_s"] or 0.0
    finished = summary["num_requests"]["finished"]
    what = fill(headline(summary), TITLE_CHARACTERS)
    return f"{what}\n{finished:,} requests, {rate:.3g} requests/s, {tokens:,.0f} output tokens/s"


def _plot_ttft(axes: Axes, frames: ResultFrames) -> None:
    requests = frames.requests
    measured = requests["sent_s"] >= frames.summary["windowed"]["start_s"]
    finished = requests[measured & (requests["status"] == "finished")]
    values = np.sort((finished["first_token_s"] - finished["sent_s"]).to_numpy())
    _plot_cdf(axes, values, np.ones(len(values), dtype=np.int64), frames.summary["ttft_s"], BLUE)
    _dress(axes, "Time to first token (TTFT)", "share of requests")


def _plot_itl(axes: Axes, frames: ResultFrames) -> None:
    gaps = frames.gaps
    values, counts = gaps["gap_s"].to_numpy(), gaps["num_tokens"].to_numpy()
    _plot_cdf(axes, values, counts, frames.summary["itl_s"], GREEN)
    _dress(axes, "Inter-token latency (ITL), all tokens pooled", "share of tokens")


def _plot_cdf(axes: Axes, values: Floats, counts: Ints, points: dict[str, float | None], colour: str) -> None:
    """The cumulated distribution of rising values over a log axis, with lines at P50 and P99."""
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_ylim(0, 1.02)
    positive = values > 0
    if not positive.any():
        axes.text(0.5, 0.5, "no sample", transform=axes.transAxes, ha="center", color=GREY)
        axes.set_xticks([])
        return
    shares = np.cumsum(counts) / counts.sum()
    picked = np.unique(np.searchsorted(shares, np.linspace(0, 1, CDF_POINTS)).clip(max=len(values) - 1))
    axes.set_xscale("log")
    axes.set_xlim(values[positive][0] * 0.8, values[-1] * 1.25)
    axes.step(values[picked], shares[picked], where="post", color=colour, linewidth=2)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda seconds, _: duration_text(seconds)))
    axes.xaxis.set_minor_formatter(FuncFormatter(lambda seconds, _: ""))
    for name in ("p50", "p99"):
        _mark_percentile(axes, name.upper(), points[name])


def _mark_percentile(axes: Axes, name: str, value: float | None) -> None:
    if value is None or value <= 0:
        return
    low, high = np.log(axes.get_xlim())
    right_half = (np.log(value) - low) / (high - low) > 0.5
    axes.axvline(value, color=GREY, linewidth=1, linestyle=(0, (4, 3)))
    axes.annotate(
        f"{name} {duration_text(value)}",
        (value, 0.06 if name == "P50" else 0.16),
        xytext=(-5 if right_half else 5, 0),
        textcoords="offset points",
        ha="right" if right_half else "left",
        fontsize=10,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1},
    )


def _plot_queue(axes: Axes, timeline: Timeline) -> None:
    for label, column, colour in (("running", "num_running", BLUE), ("waiting", "num_waiting", ORANGE)):
        values = timeline.values(column)
        mean, largest = timeline.mean(values), timeline.largest(values)
        axes.fill_between(timeline.middles_s, mean, largest, color=colour, alpha=0.25, linewidth=0)
        axes.plot(timeline.middles_s, mean, color=colour, linewidth=1.5, label=label)
    axes.set_ylim(0, max(1.0, axes.get_ylim()[1]) * 1.15)  # room for the legend
    axes.legend(loc="upper left", frameon=False, ncols=2)
    _dress(axes, "Requests in the engine (line: mean, shade: largest)", "requests")


def _plot_cache(axes: Axes, timeline: Timeline, usable_blocks: int) -> None:
    use = 1 - timeline.values("free_blocks") / max(usable_blocks, 1)
    mean = timeline.mean(use)
    axes.fill_between(timeline.middles_s, mean, timeline.largest(use), color=BLUE, alpha=0.25, linewidth=0)
    axes.plot(timeline.middles_s, mean, color=BLUE, linewidth=1.5)
    preempted = timeline.sums(timeline.values("num_preempted"))
    at_s = timeline.middles_s[preempted > 0]
    axes.scatter(
        at_s,
        np.full(len(at_s), 1.05),
        marker="v",
        s=22,
        color=RED,
        clip_on=False,
        label=f"preemptions ({int(preempted.sum()):,})",
    )
    axes.set_ylim(0, 1.1)
    axes.set_yticks(np.linspace(0, 1, 6))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    if len(at_s):
        axes.legend(loc="lower center", frameon=True, edgecolor="none", framealpha=0.8)
    _dress(axes, "KV cache in use (line: mean, shade: largest)", "share of blocks")


def _mark_load_window(axes: Axes, timeline: Timeline, summary: Summary) -> None:
    """Grey out what lies outside the window that means over time refer to: warm-up and drain."""
    window = summary["windowed"]
    axes.set_xlim(0, timeline.edges_s[-1])
    for low, high in ((0.0, window["start_s"]), (window["end_s"], timeline.edges_s[-1])):
        axes.axvspan(low, high, color="#000000", alpha=0.06, linewidth=0)
    axes.set_xlabel("time, s (grey: warm-up and drain)")


def _dress(axes: Axes, title: str, label: str) -> None:
    axes.set_title(title, fontsize=12, loc="left")
    axes.set_ylabel(label)
    axes.grid(True, which="major", color="#DDDDDD", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
