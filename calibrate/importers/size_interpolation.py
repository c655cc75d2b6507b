"""Times of sizes that a table lacks, from those on either side of them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Interpolated(NamedTuple):
    """A value, and whether it was measured."""

    value: float
    exact: bool


def between(points: Mapping[int, float], x: int) -> Interpolated:
    """The value at x, linear between its neighbours; beyond the ends that of the end."""
    if x in points:
        return Interpolated(points[x], True)
    weights = _weights(sorted(points), x)
    return Interpolated(sum(weight * points[x] for x, weight in weights), False)


def gemm_between(gemms: Mapping[tuple[int, int], Mapping[int, float]], n: int, k: int) -> dict[int, tuple[float, bool]]:
    """Time by m of a GEMM of (n, k), and whether it was measured.

    Between sizes, time over the number of weights, n k, is linear in n and in k; beyond the largest it is constant.
    Layers of one shape reach the same share of the roofline at a given m, whichever side of it they are on. The largest
    size of both may be missing: the other corners then stand for it.
    """
    if (n, k) in gemms:
        return {m: (us, True) for m, us in gemms[n, k].items()}
    corners = [
        (wn * wk, gn, gk)
        for gn, wn in _weights(sorted({n for n, _ in gemms}), n)
        for gk, wk in _weights(sorted({k for _, k in gemms}), k)
    ]
    parts = [(weight, gemms[gn, gk], gn * gk) for weight, gn, gk in corners if (gn, gk) in gemms]
    whole = sum(weight for weight, _, _ in parts)
    common = set.intersection(*(set(times) for _, times, _ in parts))
    return {m: (n * k * sum(weight * times[m] / size for weight, times, size in parts) / whole, False) for m in common}


def _weights(xs: Sequence[int], x: int) -> list[tuple[int, float]]:
    """The neighbours of x and their weights."""
    i = bisect_left(xs, x)
    if i == len(xs):
        return [(xs[-1], 1.0)]
    if xs[i] == x or i == 0:
        return [(xs[i], 1.0)]
    right = (x - xs[i - 1]) / (xs[i] - xs[i - 1])
    return [(xs[i - 1], 1 - right), (xs[i], right)]
