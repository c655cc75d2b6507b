"""Student's t distribution, for intervals out of few independent figures."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def student_t(degrees: int, confidence: float = 0.95) -> float:
    """The t with P(-t <= T <= t) = `confidence`; `degrees` >= 1.

    By bisection of the closed form for whole degrees (Abramowitz and Stegun, Handbook of Mathematical Functions,
    1964, 26.7.3 and 26.7.4).
    """
    low, high = 0.0, 1.0
    while inside(high, degrees) < confidence:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if inside(middle, degrees) < confidence else (low, middle)
    return high


def inside(t: float, degrees: int) -> float:
    """P(-t <= T <= t)."""
    angle = math.atan2(t, math.sqrt(degrees))
    cosine = math.cos(angle)
    term, series = (cosine, 0.0) if degrees % 2 else (1.0, 0.0)
    for k in range(1 if degrees % 2 else 0, degrees - 1, 2):
        series += term
        term *= cosine * cosine * (k + 1) / (k + 2)
    if degrees % 2:
        return 2 / math.pi * (angle + math.sin(angle) * series)
    return math.sin(angle) * series


def mean_interval(values: Sequence[float]) -> list[float] | None:
    """The 95 % interval of the mean of independent figures; None for fewer than two."""
    if len(values) < 2:
        return None
    mean = float(np.mean(values))
    half_width = student_t(len(values) - 1) * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return [mean - half_width, mean + half_width]
