"""What a fit makes small: how far simulated latencies are from the measured, over all of their distributions."""

from __future__ import annotations

import numpy as np

from ..sim.columns import Floats
from .comparison import Mask, RunTimes

QUANTILES = np.linspace(5, 95, 19)
WEIGHTS = {"ttft_s": 0.4, "tpot_s": 1.0, "e2e_s": 1.0}
"""What is fitted, and how much of its logarithm counts.

Queues magnify what is wrong with the time of steps: near critical load an error of 3 % is one of 7 to 8 % in TTFT. So
it counts 0.4 times, else the queue of a few requests would decide.
"""
_SHORTEST_S = 1e-6


def deviations(measured: RunTimes, simulated: RunTimes, of: Mask) -> Floats:
    """Weighted ln(simulated / measured) at 19 quantiles of TTFT, TPOT and E2E each, of the requests that `of` picks.

    Quantiles need no request of one to be that of the other, and change less by chance than single requests do.
    """
    theirs, ours = measured.latencies(), simulated.latencies()
    parts = []
    for name, weight in WEIGHTS.items():
        known = of & np.isfinite(theirs[name])
        if known.any():
            parts.append(weight * np.log(_quantiles(ours[name][known]) / _quantiles(theirs[name][known])))
    return np.concatenate(parts)


def _quantiles(values: Floats) -> Floats:
    return np.asarray(np.maximum(np.percentile(values, QUANTILES), _SHORTEST_S), dtype=np.float64)
