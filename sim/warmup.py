"""Finds where a run's warm-up ends: MSER-5 on a series in order of time.

The rule cuts so many values that the confidence interval of the mean of the rest would be the narrowest: it takes the
d that minimises the variance of what is left over how much is left, on means of five values in a row (White, Cobb and
Spratt, A comparison of five steady-state truncation heuristics for simulation, Winter Simulation Conference 2000).
"""

from __future__ import annotations

import numpy as np

from .columns import Floats

BATCH = 5
MIN_BATCHES = 20
"""Below 100 values there is no telling."""


def mser5(in_order: Floats) -> int | None:
    """How many values to cut; None where the series never settles or is too short.

    The minimum is sought in the first half, since near the end the rule follows chance; one on the very edge of it
    says that the series had not settled by then.
    """
    num_batches = len(in_order) // BATCH
    if num_batches < MIN_BATCHES:
        return None
    means = in_order[: num_batches * BATCH].reshape(num_batches, BATCH).mean(axis=1)
    means -= means.mean()  # numbers near 0 lose no digits when squared
    left = np.arange(num_batches, 0, -1)
    sums, squares = (np.cumsum(means[::-1] ** power)[::-1] for power in (1, 2))
    spread = np.maximum(squares - sums**2 / left, 0.0) / left**2
    cut = int(np.argmin(spread[: num_batches // 2 + 1]))
    return cut * BATCH if cut < num_batches // 2 else None
