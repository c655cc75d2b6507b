"""Latencies of one scenario, measured and simulated: errors against bounds and the measurement's own noise.

measured    mean over the repeats of the real run
error       simulated / measured - 1
noise       (largest - smallest) / mean over the repeats
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

METRICS = ("ttft_s", "tpot_s", "itl_s", "e2e_s")
STATISTICS = ("mean", "p50", "p95", "p99")
BOUND, WIDE_BOUND = 0.05, 0.10
"""Of the errors; the wide one of TTFT, which queueing magnifies, and of P99, which few requests decide."""
Figures = dict[str, dict[str, float | None]]
"""`{metric: {statistic: seconds}}`."""


class Verdict(StrEnum):
    """What an error means."""

    WITHIN = "within"  # the bound
    BEYOND = "beyond"  # the bound
    INCONCLUSIVE = "inconclusive"  # repeats of the measurement differ by more than the bound, or there is one only


class Compared(NamedTuple):
    """One statistic of one latency."""

    measured: float | None
    simulated: float | None
    error: float | None
    noise: float | None
    """None: the run was not repeated."""
    bound: float
    verdict: Verdict


def figures_of(summary: Mapping[str, Any]) -> Figures:
    """The latencies of a run's summary that are compared."""
    return {metric: {name: summary[metric][name] for name in STATISTICS} for metric in METRICS}


def bound_of(metric: str, statistic: str) -> float:
    """The largest error that is asked for."""
    return WIDE_BOUND if metric == "ttft_s" or statistic == "p99" else BOUND


def compared(runs: Sequence[Figures], simulated: Figures) -> dict[str, dict[str, Compared]]:
    """Every statistic of the repeats of a real run beside the simulation's."""
    return {
        metric: {
            name: _compared([run[metric][name] for run in runs], simulated[metric][name], bound_of(metric, name))
            for name in STATISTICS
        }
        for metric in METRICS
    }


def noise_of(values: Sequence[float]) -> float | None:
    """How far repeats of one measurement differ, as a share of their mean; None of a single one."""
    mean = sum(values) / len(values)
    return (max(values) - min(values)) / mean if len(values) > 1 and mean else None


def _compared(values: Sequence[float | None], simulated: float | None, bound: float) -> Compared:
    known = [value for value in values if value is not None]
    if len(known) < len(values) or not known or simulated is None or not sum(known):
        return Compared(None, simulated, None, None, bound, Verdict.INCONCLUSIVE)
    measured, noise = sum(known) / len(known), noise_of(known)
    error = simulated / measured - 1
    if noise is None or noise > bound:
        verdict = Verdict.INCONCLUSIVE
    else:
        verdict = Verdict.WITHIN if abs(error) <= bound else Verdict.BEYOND
    return Compared(measured, simulated, error, noise, bound, verdict)


def counts(table: Mapping[str, Mapping[str, Compared]]) -> dict[str, int]:
    """How many statistics got which verdict."""
    found = [row.verdict for rows in table.values() for row in rows.values()]
    return {str(verdict): found.count(verdict) for verdict in Verdict}
