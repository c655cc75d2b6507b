"""How far a curve is off where it was not measured: a random fifth of the points is held out and predicted."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

import numpy as np

from ..sim.cost_model.attention import Attention, attention_of
from ..sim.cost_model.curve_grid import CurveGrid
from ..sim.cost_model.fit_section import Errors
from ..sim.cost_model.grouped_curve import GroupedCurve
from ..sim.cost_model.kernel_floors import KernelFloors
from ..sim.cost_model.profile import Curve
from ..sim.cost_model.profile_header import FUSED, AttentionLaunches
from ..sim.cost_model.tile_curve import GEMMS, TileCurve
from ..sim.cost_model.timings import Shape
from .holes import fill
from .row_groups import best_group, rows_left_over
from .tiles import best_tile

SHARE = 0.2
FEWEST = 10
"""Points of a kernel below which none is held out."""


def held_out_errors(
    kernel: str,
    points: Mapping[Shape, float],
    floors: KernelFloors,
    rng: np.random.Generator,
    derived: Container[Shape] = (),
    launched: AttentionLaunches = FUSED,
    *,
    in_groups: bool = False,
) -> dict[Shape, float]:
    """|predicted / measured - 1| of a random fifth of a kernel's points, by shape; empty where there are few.

    `in_groups`: a linear layer may multiply its rows in groups, as on a CPU.
    What is left is treated as a whole table is: holes in the grid of attention are filled. Points that were `derived`
    from others are never held out. The group of a linear layer's rows is that of all points.
    """
    shapes = sorted(shape for shape in points if shape not in derived)
    if len(shapes) < FEWEST:
        return {}
    left_out = {shapes[i] for i in rng.choice(len(shapes), round(SHARE * len(shapes)), replace=False)}
    kept = {shape: time for shape, time in points.items() if shape not in left_out}
    if kernel == "attention":
        attention = attention_of(launched, {**kept, **fill(kept)}, floors.attention_us)
        return {shape: abs(_attention(attention, shape) / points[shape] - 1) for shape in sorted(left_out)}
    group = best_group(points) if in_groups and kernel in GEMMS else None
    curve = _curve(kernel, kept, floors, None if group is None else rows_left_over(kept, group))
    return {shape: abs(curve.at(shape)[0] / points[shape] - 1) for shape in sorted(left_out)}


def _curve(kernel: str, points: Mapping[Shape, float], floors: KernelFloors, extra: tuple[float, ...] | None) -> Curve:
    def floor(*shape: int) -> float:
        return floors.floor_us(kernel, shape)

    if extra is not None:
        return GroupedCurve(points, floor, extra)
    return TileCurve(points, floor, tile=best_tile(points)) if kernel in GEMMS else CurveGrid(points, floor)


def _attention(curve: Attention, shape: Shape) -> float:
    q, kv, n, mean = shape
    return curve.at(q, kv, n, mean)[0]


def errors_of(values: Sequence[float]) -> Errors | None:
    """Median and P95 of some errors; None of none."""
    if not values:
        return None
    median, p95 = np.percentile(values, [50, 95])
    return Errors(points=len(values), median=round(float(median), 4), p95=round(float(p95), 4))
