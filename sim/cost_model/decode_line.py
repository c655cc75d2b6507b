"""Attention of so many decodes as pieces of straight lines over their summed context, one step or a whole stretch.

Both ways do the same operations on the same doubles in the same order, so they agree to the last bit.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .curve_grid import Basis, CurveGrid, Floor
from .ragged_curve import RaggedCurve

Floats = NDArray[np.float64]


class DecodeLine:
    """The curve of a batch size: `bends` are summed contexts; beyond the last one time grows as the floor does."""

    def __init__(self, curve: CurveGrid | RaggedCurve, num_decodes: int, scale: float, floor: Floor) -> None:
        """`scale` turns the curve's times into what is asked for; `floor` takes decodes and mean context."""
        means = sorted(curve.coordinates(num_decodes))
        found = [curve.at((num_decodes, mean)) for mean in means]
        self._bends = [num_decodes * mean for mean in means]
        self._times = [scale * time for time, _ in found]
        self._slopes = _slopes(self._bends, self._times)
        self._bases = [basis for _, basis in found]
        self._num_decodes = num_decodes
        self._floor = floor
        self._last_floor = floor(num_decodes, means[-1])

    def at(self, context_tokens: int) -> tuple[float, Basis]:
        """Time at a summed context, and what it rests on."""
        bends = self._bends
        if context_tokens > bends[-1]:
            growth = self._floor(self._num_decodes, context_tokens / self._num_decodes) / self._last_floor
            return self._times[-1] * growth, Basis.EXTRAPOLATED
        i = bisect_right(bends, context_tokens) - 1
        if i < 0:
            return self._times[0], Basis.EXTRAPOLATED
        if bends[i] == context_tokens:
            return self._times[i], self._bases[i]
        time = self._times[i] + (context_tokens - bends[i]) * self._slopes[i]
        return time, max(self._bases[i], Basis.INTERPOLATED)

    def along(self, context: NDArray[np.int64]) -> tuple[Floats, NDArray[np.int64]]:
        """The same for many summed contexts: times, and bases as numbers."""
        bends, times = np.array(self._bends), np.array(self._times)
        slopes, bases = np.array(self._slopes), np.array(self._bases)
        i = np.maximum(np.searchsorted(bends, context, side="right") - 1, 0)
        found = times[i] + np.maximum(context - bends[i], 0) * slopes[i]
        basis = np.where(bends[i] == context, bases[i], np.maximum(bases[i], Basis.INTERPOLATED))
        beyond = context > bends[-1]
        if beyond.any():
            means: Any = context[beyond] / self._num_decodes
            growth = np.array([self._floor(self._num_decodes, mean) for mean in means.tolist()]) / self._last_floor
            found[beyond] = times[-1] * growth
        return found, np.where(beyond | (context < bends[0]), Basis.EXTRAPOLATED, basis)


def _slopes(bends: list[int], times: list[float]) -> list[float]:
    """Rise from each bend to the next one; the last has none."""
    pairs = zip(zip(bends, times, strict=True), zip(bends[1:], times[1:], strict=True), strict=False)
    return [(t1 - t0) / (x1 - x0) for (x0, t0), (x1, t1) in pairs] + [0.0]
