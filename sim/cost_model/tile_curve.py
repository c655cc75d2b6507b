"""A linear layer's time by its tokens, which rises in steps: GPUs multiply matrices in tiles of so many rows."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Mapping

from .curve_grid import Basis, CurveGrid, Floor, Priced

GEMMS = ("qkv", "o", "gate_up", "down", "router", "lm_head")


class TileCurve:
    """The curve through points whose time depends on the tiles that a size fills.

    Between two points of one tile time is linear; between points of several it rises at the edges of tiles, by the
    same amount at each. A tile of 1 is plain linear interpolation. Measured points are exact, and beyond the ends it
    is as `CurveGrid` says.
    """

    def __init__(
        self,
        points: Mapping[tuple[int, ...], float],
        floor: Floor,
        derived: Container[tuple[int, ...]] = (),
        tile: int = 1,
    ) -> None:
        self._ends = CurveGrid(points, floor, derived)
        self._times = {shape[0]: time for shape, time in points.items()}
        self._sizes = sorted(self._times)
        self._tile = tile

    def at(self, shape: tuple[int, ...]) -> Priced:
        """Time at a size, and what it rests on."""
        (size,) = shape
        i = bisect_left(self._sizes, size)
        if not 0 < i < len(self._sizes) or self._sizes[i] == size:
            return self._ends.at(shape)
        left, right = self._sizes[i - 1], self._sizes[i]
        share = share_between(left, right, size, self._tile)
        time = self._times[left] + (self._times[right] - self._times[left]) * share
        return time, Basis.INTERPOLATED


def share_between(left: int, right: int, size: int, tile: int) -> float:
    """How far a size is on the way from one to the next: in tiles, in tokens where all are in one."""
    first, last = -(-left // tile), -(-right // tile)
    if first == last:
        return (size - left) / (right - left)
    return (-(-size // tile) - first) / (last - first)
