"""How sure a single run's figures are: 95 % intervals out of batches of one sequence of requests.

Neighbouring requests share a queue, so their latencies are no independent draws; long batches in a row nearly are.
A percentile is compared with those of the batches (sectioning: Asmussen and Glynn, Stochastic Simulation, 2007, chapter
III), from the percentile of all, not from the batches' mean, since that of a small batch is biased; by how much less
that of all is, is known from how far the two are apart (the jackknife: Miller, Biometrika 61, 1974).

There are few batches, so that each holds many of the busy periods that make a queue's tail; what that costs is a wider
interval, by half at most where requests are independent (Schmeiser, Batch size effects in the analysis of simulation
output, Operations Research 30, 1982). Figures are compared by their logarithms: a run in which no long queue happened
to build up finds both a P99 and a spread that are too small, and less so in proportion. Where a batch has next to
nothing of a latency, logarithms know no bound, and square roots take their place. How often intervals hold what they
should is measured by `tests/benchmarks/interval_coverage.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from .columns import Floats
from .gaps import Gaps, union
from .percentiles import PERCENTILES, Distribution, distribution, gap_distribution
from .student_t import student_t

NUM_BATCHES = 4
MIN_VALUES = 200
"""Below this there is no telling."""
LEAST_SHARE = 0.25
"""Of the whole's figure; with less in one of the batches, figures are compared by their square roots."""
STATISTICS = ("mean", *(f"p{percentage}" for percentage in PERCENTILES))

_STUDENT_T = student_t(NUM_BATCHES - 1)

Interval = list[float]
"""Its low and its high end."""
Intervals = dict[str, Interval | None]
"""Of the mean and of each percentile; None where the sample is too small to tell."""


def intervals(in_order: Floats) -> Intervals:
    """Of times, none below 0, in the order in which they were begun."""
    if len(in_order) < MIN_VALUES:
        return dict.fromkeys(STATISTICS)
    return _intervals(distribution(in_order), [distribution(batch) for batch in np.array_split(in_order, NUM_BATCHES)])


def gap_intervals(batches: Sequence[Gaps]) -> Intervals:
    """Of pooled gaps, given as many batches in a row of about as many gaps each."""
    if sum(len(batch.gap_ns) for batch in batches) < MIN_VALUES or len(batches) < NUM_BATCHES:
        return dict.fromkeys(STATISTICS)
    cuts = [len(batches) * i // NUM_BATCHES for i in range(NUM_BATCHES + 1)]
    parts = [union(batches[a:b]) for a, b in pairwise(cuts)]
    return _intervals(gap_distribution(union(parts)), [gap_distribution(part) for part in parts])


def half_width(in_order: Floats, statistic: Callable[[Floats], float]) -> float | None:
    """How far off a statistic of values of either sign may be; None for too few."""
    if len(in_order) < MIN_VALUES:
        return None
    return _half_width(statistic(in_order), [statistic(batch) for batch in np.array_split(in_order, NUM_BATCHES)])


def _intervals(whole: Distribution, parts: Sequence[Distribution]) -> Intervals:
    return {name: _interval(*(figures[name] or 0.0 for figures in (whole, *parts))) for name in STATISTICS}


def _interval(whole: float, *parts: float) -> Interval:
    """A figure that is never negative, give or take; the interval holds it, but not in the middle."""
    scale = math.log if min(parts) > LEAST_SHARE * whole > 0 else math.sqrt
    there, batches = scale(whole), [scale(part) for part in parts]
    width = _half_width(there, batches)
    centre = there - (sum(batches) / len(batches) - there) / (len(batches) - 1)
    low, high = centre - width, centre + width
    return [math.exp(low), math.exp(high)] if scale is math.log else [max(0.0, low) ** 2, high**2]


def _half_width(whole: float, parts: Sequence[float]) -> float:
    squares = sum((part - whole) ** 2 for part in parts)
    return _STUDENT_T * math.sqrt(squares / (len(parts) - 1) / len(parts))
