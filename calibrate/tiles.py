"""Finds the tile in whose steps a linear layer's time rises, from its own points."""

from __future__ import annotations

from collections.abc import Mapping

from ..sim.cost_model.tile_curve import share_between
from ..sim.cost_model.timings import Shape

TILES = (1, 16, 32, 64, 128, 256)


def best_tile(points: Mapping[Shape, float]) -> int:
    """The tile with which each point is best told from its neighbours, without it; the smallest of equals."""
    times = sorted((shape[0], time) for shape, time in points.items())
    return min(TILES, key=lambda tile: _error(times, tile))


def _error(times: list[tuple[int, float]], tile: int) -> float:
    """Sum of |predicted / measured - 1| over all points but the first and the last."""
    total = 0.0
    for (left, before), (size, time), (right, after) in zip(times, times[1:], times[2:], strict=False):
        total += abs((before + (after - before) * share_between(left, right, size, tile)) / time - 1)
    return total
