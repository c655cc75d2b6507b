"""The engine's state over time, measured and simulated: how many ran and waited, how full the KV cache was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..policies.core.records import StepRecord
from ..sim.columns import NS_PER_S, Floats
from .runs.measured_run import MeasuredSeries

SERIES = ("running", "waiting", "kv_usage")


class SeriesPair(NamedTuple):
    """One quantity at the same times; arrays of one length."""

    measured: Floats
    simulated: Floats

    def correlation(self) -> float | None:
        """Pearson's; None where one of the two never changes."""
        if len(self.measured) < 2 or not (np.ptp(self.measured) and np.ptp(self.simulated)):
            return None
        return float(np.corrcoef(self.measured, self.simulated)[0, 1])

    def mean_deviation(self) -> float:
        """The mean of |simulated - measured|."""
        return float(np.mean(np.abs(self.simulated - self.measured)))


class SeriesComparison(NamedTuple):
    """All quantities that were measured."""

    time_s: Floats
    pairs: dict[str, SeriesPair]

    def as_json(self) -> dict[str, object]:
        """Times, values, correlation and mean deviation of each."""
        pairs = {
            name: {
                "measured": pair.measured.tolist(),
                "simulated": pair.simulated.tolist(),
                "correlation": pair.correlation(),
                "mean_deviation": pair.mean_deviation(),
            }
            for name, pair in self.pairs.items()
        }
        return {"time_s": self.time_s.tolist(), **pairs}


def compare_series(measured: MeasuredSeries, steps: Sequence[StepRecord], num_blocks: int) -> SeriesComparison:
    """The simulated state at the measured times; `num_blocks` can be handed out."""
    at = _step_at(steps, measured.time_s)
    simulated = {
        "running": _values(steps, at, "num_running"),
        "waiting": _values(steps, at, "num_waiting"),
        "kv_usage": np.where(at < 0, 0.0, 1 - _values(steps, at, "free_blocks") / num_blocks),
    }
    theirs = {name: getattr(measured, name) for name in SERIES}
    pairs = {name: SeriesPair(theirs[name], simulated[name]) for name in SERIES if theirs[name] is not None}
    return SeriesComparison(measured.time_s, pairs)


def _step_at(steps: Sequence[StepRecord], time_s: Floats) -> np.typing.NDArray[np.int64]:
    """The last step that had begun at each time, -1 before the first.

    An engine logs its state once a step, after planning the next one, which is when that one begins on the device.
    """
    begun_s = np.array([step.start_ns for step in steps], dtype=np.float64) / NS_PER_S
    return np.searchsorted(begun_s, time_s, side="right").astype(np.int64) - 1


def _values(steps: Sequence[StepRecord], at: np.typing.NDArray[np.int64], name: str) -> Floats:
    values = np.array([getattr(step, name) for step in steps], dtype=np.float64)
    return np.where(at < 0, 0.0, values[at])
