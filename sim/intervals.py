"""How sure a single run's figures are: 95 % intervals out of batches of one sequence of requests."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .columns import Floats

NUM_BATCHES = 20
MIN_BATCH = 10
STUDENT_T = 2.093
"""97.5 % point of Student's t with NUM_BATCHES - 1 degrees of freedom."""

STATISTICS: dict[str, Callable[[Floats], float]] = {
    "mean": lambda values: float(np.mean(values)),
    "p50": lambda values: float(np.percentile(values, 50)),
    "p99": lambda values: float(np.percentile(values, 99)),
}

Interval = list[float]
"""Its low and its high end."""


def intervals(in_order: Floats) -> dict[str, Interval | None]:
    """95 % intervals of mean, P50 and P99 of a sequence; None where it is too short to tell."""
    return {name: batch_interval(in_order, statistic) for name, statistic in STATISTICS.items()}


def batch_interval(in_order: Floats, statistic: Callable[[Floats], float]) -> Interval | None:
    """The statistic of all, give or take what its values in 20 batches in a row say; None below 200 values.

    Neighbouring requests share a queue, so their latencies are no independent draws; batches in a row nearly
    are. Deviations are taken from the statistic of all, not from the batches' mean, since a percentile of a
    small batch is biased (sectioning: Asmussen and Glynn, Stochastic Simulation, 2007, chapter III). No latency is
    negative, so the interval begins at 0 at the least.
    """
    if len(in_order) < NUM_BATCHES * MIN_BATCH:
        return None
    whole = statistic(in_order)
    parts = np.array([statistic(batch) for batch in np.array_split(in_order, NUM_BATCHES)])
    variance = float(np.sum((parts - whole) ** 2)) / (NUM_BATCHES - 1)
    half_width = STUDENT_T * math.sqrt(variance / NUM_BATCHES)
    return [max(0.0, whole - half_width), whole + half_width]
