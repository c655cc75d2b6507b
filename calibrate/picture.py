"""Draws a profile: curves through their points, above the data sheet's floor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..sim.cost_model.attention import Attention, attention_of
from ..sim.cost_model.curve_grid import Basis
from ..sim.cost_model.profile import Curve, Profile
from ..sim.cost_model.timings import Shape
from .fit import floors_of

KERNELS = ("qkv", "o", "gate_up", "down", "lm_head")
BATCHES = (1, 8, 64)
CHUNKS = (64, 512, 2048)
SAMPLES = 200


def draw_profile(profile: Profile, output: Path) -> None:
    """Write the figure as a PNG; the same profile gives the same bytes."""
    profile_figure(profile).savefig(output, format="png", dpi=110, metadata={"Software": None})


def profile_figure(profile: Profile) -> Figure:
    """Four panels: linear layers, attention of decodes, of prefill, and of both together."""
    figure = Figure(figsize=(12, 8.5), layout="constrained")
    linear, decode, prefill, mixed = figure.subplots(2, 2).flat
    _draw_linear(profile, linear)
    _draw_attention(profile, decode, prefill, mixed)
    header = profile.header
    legend = "points measured (hollow: derived), lines predicted, dashes floor"
    figure.suptitle(f"{header.name}: {header.model.name} on {header.gpu}; {legend}")
    return figure


def _draw_linear(profile: Profile, axes: Axes) -> None:
    floors = floors_of(profile.header)

    def floor_us(name: str, size: float) -> float:
        return floors.floor_us(name, (round(size),))

    for i, name in enumerate(name for name in KERNELS if profile.points(name)):
        floor = partial(floor_us, name)
        curve = profile.curve(name, floor)
        known = {shape[0]: time for shape, time in profile.points(name).items()}
        derived = {shape[0] for shape in profile.derived(name)}
        _draw_line(axes, name, i, known, derived, partial(_first, curve), floor)
    _finish(axes, "linear layers", "tokens (lm_head: rows)")


def _first(curve: Curve, size: int) -> float:
    return curve.at((size,))[0]


def _draw_attention(profile: Profile, decode: Axes, prefill: Axes, mixed: Axes) -> None:
    points = {shape[:4]: time for shape, time in profile.points("attention").items() if shape[4] <= shape[3]}
    floor = floors_of(profile.header).attention_us
    derived = {shape[:4] for shape in profile.derived("attention")}
    curve = attention_of(profile.header.attention, points, floor, derived)
    for i, n in enumerate(_nearest({shape[2] for shape in points if not shape[0]}, BATCHES)):
        _draw_slice(decode, "1 decode" if n == 1 else f"{n} decodes", i, points, curve, floor, (0, 0, n), 3)
    for i, q in enumerate(_nearest({shape[0] for shape in points if shape[1] and not shape[2]}, CHUNKS)):
        _draw_slice(prefill, f"chunk of {q}", i, points, curve, floor, (q,), 1)
    both = {shape[:3] for shape in points if shape[0] and shape[2]}
    if both:
        q, kv, _ = min(both, key=lambda shape: abs(shape[0] - 512) + abs(shape[1] - 1024))
        for i, n in enumerate(_nearest({shape[2] for shape in both if shape[:2] == (q, kv)}, BATCHES)):
            _draw_slice(mixed, "1 decode" if n == 1 else f"{n} decodes", i, points, curve, floor, (q, kv, n), 3)
        _finish(mixed, f"attention of a chunk of {q} behind {kv}, with decodes", "mean context of the decodes")
    else:
        apart = profile.header.attention.launches == "separate"
        says = "prefill and decodes\nare launched apart: the two add"
        says = says if apart else "nothing measured of\nprefill and decodes together"
        mixed.text(0.5, 0.5, says, ha="center", va="center")
        mixed.set_axis_off()
    _finish(decode, "attention of decodes", "mean context")
    _finish(prefill, "attention of prefill", "tokens cached before the chunk")


def _draw_slice(
    axes: Axes,
    label: str,
    i: int,
    points: dict[Shape, float],
    curve: Attention,
    floor: Callable[..., float],
    fixed: Shape,
    axis: int,
) -> None:
    rest = (0,) * (3 - axis)
    line = {shape[axis]: t for shape, t in points.items() if shape[:axis] == fixed and shape[axis + 1 :] == rest}

    def at(x: int) -> tuple[int, int, int, int]:
        q, kv, n, mean = fixed + (x,) + rest  # noqa: RUF005 (mypy cannot tell the length of the other way)
        return q, kv, n, mean

    if line:
        derived = {x for x in line if curve.at(*at(x))[1] != Basis.MEASURED}
        _draw_line(axes, label, i, line, derived, lambda x: curve.at(*at(x))[0], lambda x: floor(*at(x)))


def _draw_line(
    axes: Axes,
    label: str,
    i: int,
    points: dict[int, float],
    derived: set[int],
    curve: Callable[[int], float],
    floor: Callable[[int], float],
) -> None:
    """Points (hollow: derived), the curve from the first to twice the last, and its floor, in one colour."""
    colour = f"C{i}"
    first, last = max(min(points), 1), 2 * max(points)
    xs = np.unique(np.geomspace(first, max(last, first + 1), SAMPLES).astype(int)).tolist()
    for chosen, face in ((points.keys() - derived, colour), (derived, "none")):
        shown = sorted(chosen)
        axes.plot(shown, [points[x] for x in shown], "o", color=colour, markersize=3, markerfacecolor=face)
    axes.plot(xs, [curve(x) for x in xs], "-", color=colour, linewidth=1, label=label)
    axes.plot(xs, [floor(x) for x in xs], "--", color=colour, linewidth=0.8)


def _nearest(known: set[int], wanted: Sequence[int]) -> list[int]:
    return sorted({min(known, key=lambda x: abs(x - target)) for target in wanted}) if known else []


def _finish(axes: Axes, title: str, x_label: str) -> None:
    axes.set(title=title, xlabel=x_label, ylabel="us a launch", xscale="log", yscale="log")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
