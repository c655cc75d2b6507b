"""How requests come, as a generator's pacing says it: the trace's own gaps, under a rate that stays or changes.

The rate changes where the numbers of requests in equal stretches of the trace vary more than those of a process with
its gaps in an order of chance would: such numbers have a variance of CV^2 times their mean (renewal theory; Cox,
Renewal Theory, 1962, 4.5), so that sum((number - mean)^2) / (CV^2 mean) is about chi-squared distributed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...sim.columns import NS_PER_S, Floats, Ints

MIN_PER_STRETCH = 200
"""Requests, on average."""
MAX_STRETCHES = 48
_ONE_IN_A_THOUSAND = 3.0902
"""The normal quantile of 0.999."""
MEAN_GAP = 10**6
"""Of the table of gaps; less where one of them would be too large for it."""
MAX_GAP = 10**9


class Pace(NamedTuple):
    """Keys of a generator's pacing, the table of gaps that goes with them, and why they are what they are."""

    keys: dict[str, Any]
    gaps: Ints | None
    reason: str


def fitted_pace(times_ns: npt.ArrayLike, max_gaps: int) -> Pace:
    """The pace of requests that come at these times, two at least, in order."""
    times_s = np.asarray(times_ns, dtype=np.int64)
    times_s = (times_s - times_s[0]) / NS_PER_S
    gaps_s = np.diff(times_s)
    if not gaps_s.any():
        return Pace({"rate": "inf"}, None, "all requests come at once")
    mean_s = float(gaps_s.mean())
    cv = float(gaps_s.std()) / mean_s
    num = min(MAX_STRETCHES, len(times_s) // MIN_PER_STRETCH)
    if num >= 2:
        counts, _ = np.histogram(times_s, num)
        excess = float(((counts - counts.mean()) ** 2).sum() / (max(cv, 1.0) ** 2 * counts.mean()))
        expected = chi_squared(num - 1)
        found = f"chi-squared {excess:,.0f} over {num} equal stretches, chance ends at {expected:,.0f}"
        if excess > expected:
            return _changing(times_s, counts, f"the rate of arrivals changes: {found}", max_gaps)
        return _steady(gaps_s, mean_s, f"the rate of arrivals stays: {found}", max_gaps)
    return _steady(gaps_s, mean_s, "the rate of arrivals is taken to stay: the trace is too short to tell", max_gaps)


def chi_squared(degrees: int) -> float:
    """What a chi-squared variable exceeds once in a thousand times, about (Wilson and Hilferty, 1931)."""
    spread = 2 / (9 * degrees)
    return float(degrees * (1 - spread + _ONE_IN_A_THOUSAND * spread**0.5) ** 3)


def _steady(gaps_s: Floats, mean_s: float, reason: str, max_gaps: int) -> Pace:
    table = gap_table(gaps_s, float(np.var(gaps_s)) / mean_s**2, max_gaps)
    return Pace({"rate": _rounded(1 / mean_s), "arrivals": "empirical"}, table, reason)


def _changing(times_s: Floats, counts: Ints, reason: str, max_gaps: int) -> Pace:
    """The trace's course as a day that repeats: straight lines from one border of stretches to the next; and gaps as
    they are where the rate is 1.
    """
    length_s = float(times_s[-1])
    width_s = length_s / len(counts)
    at_borders = (counts + np.roll(counts, 1)) / 2 * (len(times_s) - 1) / counts.sum() / width_s
    rates = np.append(at_borders, at_borders[0])
    areas = np.append(0.0, np.cumsum((rates[1:] + rates[:-1]) / 2 * width_s))
    line = np.minimum((times_s / width_s).astype(np.int64), len(counts) - 1)
    into_s = times_s - line * width_s
    now = rates[line] + (rates[line + 1] - rates[line]) * into_s / width_s
    gaps = np.diff(areas[line] + (rates[line] + now) / 2 * into_s)
    # In an order of chance, a gap and the rate at its end have nothing to do with one another: its square is that of
    # the table's gaps, on average, times that of 1 / rate.
    slowness = float((now**-2.0).mean() / (now**-1.0).mean() ** 2)
    squared_cv = (1 + float(np.var(np.diff(times_s)) / np.diff(times_s).mean() ** 2)) / slowness - 1
    day = {"length_s": _rounded(length_s), "rates": [_rounded(rate) for rate in at_borders]}
    return Pace({"rate": {"day": day}, "arrivals": "empirical"}, gap_table(gaps, squared_cv, max_gaps), reason)


def gap_table(gaps: Floats, squared_cv: float, max_gaps: int) -> Ints:
    """The gaps as whole numbers of the same proportions, rising; where they are too many, means of neighbours.

    A power of them is taken, near 1, that brings their squared coefficient of variation to what it is to be, or as near
    as one can.
    """
    rising = np.sort(gaps)
    if len(rising) > max_gaps:
        rising = np.array([part.mean() for part in np.array_split(rising, max_gaps)])
    relative = rising / rising[-1]
    low, high = 0.0, 8.0
    for _ in range(40):
        power = (low + high) / 2
        bent = relative**power
        low, high = (power, high) if bent.var() < squared_cv * bent.mean() ** 2 else (low, power)
    relative = relative**high / (relative**high).mean()
    scale = min(MEAN_GAP, MAX_GAP / relative[-1])
    return np.asarray(np.rint(relative * scale), dtype=np.int64)


def _rounded(rate: float) -> float:
    return float(f"{rate:.8g}")
