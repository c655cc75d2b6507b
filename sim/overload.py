"""Tells whether the queue grew for want of capacity, so that percentiles depend on how long the run was."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .columns import NS_PER_S, Ints
from .window import Level, Window

MIN_GROWTH = 0.02
"""Share of the arrivals that must stay behind in the queue."""
MIN_DEVIATIONS = 2.0
"""Growth in units of sqrt(arrivals)."""


class QueueTrend(NamedTuple):
    """How the waiting queue moved over the window in which load was on."""

    slope_per_s: float
    """Of the least-squares line through the queue's length over time."""
    window_s: float
    first_quarter_mean: float
    last_quarter_min: float


class QueueFold:
    """Takes the queue's length over time and gives its trend over a window."""

    def __init__(self, window: Window) -> None:
        self.window = window
        self._first_quarter = Level()
        self._last_quarter_min: int | None = None
        self._moment = 0.0  # integral of the length x (time from the window's middle), in s^2

    def add(self, waiting: Ints, start_ns: Ints, end_ns: Ints) -> None:
        """So many waited in each span of time."""
        self._first_quarter.add(waiting, self.window.quarter(0).overlap(start_ns, end_ns))
        late = waiting[self.window.quarter(3).overlap(start_ns, end_ns) > 0]
        if len(late):
            known = self._last_quarter_min
            self._last_quarter_min = int(late.min() if known is None else min(known, late.min()))
        window = self.window
        low, high = np.maximum(start_ns, window.start_ns), np.minimum(end_ns, window.end_ns)
        middle_s = (low + high - (window.start_ns + window.end_ns)) / (2 * NS_PER_S)
        self._moment += float(np.dot(waiting * middle_s, window.overlap(start_ns, end_ns) / NS_PER_S))

    def trend(self) -> QueueTrend | None:
        """How the queue moved; None where no time passed."""
        length_s = self.window.length_ns / NS_PER_S
        quarter_ns = self.window.quarter(0).length_ns
        if quarter_ns == 0:
            return None
        first_quarter_mean = self._first_quarter.integral_ns / quarter_ns
        # The line that minimises the integral of squared distances has slope moment / (length^3 / 12).
        slope = self._moment / (length_s**3 / 12)
        return QueueTrend(slope, length_s, first_quarter_mean, self._last_quarter_min or 0)


def is_overloaded(trend: QueueTrend | None, num_arrivals: int) -> bool:
    """Whether the queue grew all through the window by more than chance explains; False without a window.

    Three things must hold, each against a way in which a stable queue looks as if it grew:
    - the fitted growth over the window is >= 2 % of the arrivals: less is of no account to a user;
    - it is >= 2 sqrt(arrivals): a queue at exactly its capacity walks at random, with a deviation of about
      sqrt(arrivals) for Poisson arrivals, so short runs prove little;
    - in the last quarter the queue never came down to its mean of the first quarter: bursts come and drain,
      and a burst near the end gives a slope too, but an overloaded queue does not come back.
    """
    if trend is None:
        return False
    growth = trend.slope_per_s * trend.window_s
    enough = growth >= max(MIN_GROWTH * num_arrivals, MIN_DEVIATIONS * math.sqrt(num_arrivals))
    return enough and trend.last_quarter_min > trend.first_quarter_mean
