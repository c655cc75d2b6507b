"""How far a simulated run is from the measured one: errors of each latency's mean and percentiles.

    TTFT   first token - arrival             queue   scheduled - arrival
    E2E    last token - arrival              scheduled to first token   first token - scheduled
    TPOT   (last token - first token) / (output tokens - 1), for more than one output token
    ITL    gaps between output chunks, pooled over requests

An error is simulated / measured - 1. Percentiles are numpy's.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..sim.columns import Floats
from ..sim.gaps import Gaps
from ..sim.percentiles import Distribution, distribution, gap_distribution
from .runs.measured_run import MeasuredRun

STATISTICS = ("mean", "p50", "p90", "p95", "p99")
SHORTEST_S = 1e-9
"""Below a nanosecond a time is none, and has no relative error."""
Mask = npt.NDArray[np.bool_]
Errors = dict[str, dict[str, dict[str, float | None]]]
"""`{metric: {statistic: {measured, simulated, error}}}`, in seconds and as a share."""


class RunTimes(NamedTuple):
    """When things happened to the requests of a run, in order of arrival: arrays of one length, NaN: not known."""

    arrival_s: Floats
    scheduled_s: Floats
    first_token_s: Floats
    last_token_s: Floats
    output_tokens: Floats

    def latencies(self) -> dict[str, Floats]:
        """Each latency of every request, NaN where a moment is not known."""
        after_first = np.where(self.output_tokens > 1, self.output_tokens - 1, np.nan)
        return {
            "ttft_s": self.first_token_s - self.arrival_s,
            "tpot_s": (self.last_token_s - self.first_token_s) / after_first,
            "e2e_s": self.last_token_s - self.arrival_s,
            "queue_s": self.scheduled_s - self.arrival_s,
            "scheduled_to_first_token_s": self.first_token_s - self.scheduled_s,
        }


def measured_times(run: MeasuredRun) -> RunTimes:
    """The times of a measured run."""
    names = ("arrival_s", "scheduled_s", "first_token_s", "last_token_s")
    return RunTimes._make([*(run.times(name) for name in names), run.output_tokens])


def latency_errors(measured: RunTimes, simulated: RunTimes, of: Mask) -> Errors:
    """Errors over the requests that the mask picks; of each latency only those whose measured value is known."""
    errors = {}
    ours = simulated.latencies()
    for name, values in measured.latencies().items():
        known = of & np.isfinite(values)
        if known.any():
            errors[name] = _errors(distribution(values[known]), distribution(ours[name][known]))
    return errors


def gap_errors(run: MeasuredRun, simulated: Gaps, of: Mask) -> Errors:
    """Errors of the pooled gaps between output chunks; nothing where the run does not have them."""
    known = [request.itls_s for request, picked in zip(run.requests, of, strict=True) if picked]
    if not known or any(gaps is None for gaps in known):
        return {}
    pooled = np.concatenate([np.array(gaps, dtype=np.float64) for gaps in known])
    return {"itl_s": _errors(distribution(pooled), gap_distribution(simulated))} if len(pooled) else {}


def _errors(measured: Distribution, simulated: Distribution) -> dict[str, dict[str, float | None]]:
    return {name: _error(measured[name], simulated[name]) for name in STATISTICS}


def _error(measured: float | None, simulated: float | None) -> dict[str, float | None]:
    if measured is None or simulated is None or measured < SHORTEST_S:
        return {"measured": measured, "simulated": simulated, "error": None}
    relative = simulated / measured - 1
    return {"measured": measured, "simulated": simulated, "error": relative}


def never_queued(run: MeasuredRun, within_s: float) -> Mask:
    """Requests that were scheduled within so long after the scheduler learned of them; none where that is not known."""
    waited_s = run.times("scheduled_s") - run.times("queued_s")
    return np.asarray(waited_s <= within_s)
