"""Mean, percentiles and maximum of a sample, plain or weighted; percentiles are numpy's (linear)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .columns import NS_PER_S, Floats, Ints
from .gaps import Gaps

PERCENTILES = (50, 90, 95, 99)

Distribution = dict[str, float | None]
"""`mean, p50, p90, p95, p99, max`; all None where the sample is empty."""


def weighted_percentiles(
    values: npt.ArrayLike, counts: npt.ArrayLike, percentages: Sequence[float] = PERCENTILES
) -> list[float]:
    """What numpy.percentile gives for the sample that holds values[i] counts[i] times.

    values  [n]  rising
    counts  [n]  >= 0, their sum > 0
    """
    values, cumulated = np.asarray(values, dtype=np.float64), np.cumsum(np.asarray(counts, dtype=np.int64))
    last = int(cumulated[-1]) - 1
    return [_percentile(values, cumulated, last, percentage) for percentage in percentages]


def _percentile(values: Floats, cumulated: Ints, last: int, percentage: float) -> float:
    """The value at rank `last * percentage / 100`, between its neighbours; rounded as numpy does."""
    rank = last * (percentage / 100)
    below = min(math.floor(rank), last)
    low, high = (float(values[np.searchsorted(cumulated, r, side="right")]) for r in (below, min(below + 1, last)))
    fraction = rank - below
    if fraction < 0.5:
        return low + (high - low) * fraction
    return high - (high - low) * (1 - fraction)


def distribution(values_s: Floats) -> Distribution:
    """Of a plain sample; its order does not matter."""
    if len(values_s) == 0:
        return _summary(None, None, None)
    percentiles = np.percentile(values_s, PERCENTILES).tolist()
    return _summary(float(np.mean(values_s)), percentiles, float(np.max(values_s)))


def gap_distribution(gaps: Gaps) -> Distribution:
    """Of the pooled gaps, in seconds, each gap counted as often as tokens waited it."""
    used = gaps.num_tokens > 0
    gap_ns, count = gaps.gap_ns[used], gaps.num_tokens[used]
    if len(gap_ns) == 0:
        return _summary(None, None, None)
    gap_s = gap_ns / NS_PER_S
    mean_s = int(np.dot(gap_ns, count)) / int(count.sum()) / NS_PER_S
    return _summary(mean_s, weighted_percentiles(gap_s, count), float(gap_s[-1]))


def _summary(mean: float | None, percentiles: Sequence[float] | None, largest: float | None) -> Distribution:
    points = percentiles if percentiles is not None else [None] * len(PERCENTILES)
    names = [f"p{percentage}" for percentage in PERCENTILES]
    return {"mean": mean, **dict(zip(names, points, strict=True)), "max": largest}
