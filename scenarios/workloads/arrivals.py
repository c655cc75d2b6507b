"""When requests come: integer nanoseconds from 0, evenly or at random, at a rate that may change, without end."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, chain, count, repeat

from ..schema_pacing import Pacing
from .draws import exponentials, gammas
from .rate_curve import due_times

_NS = 1_000_000_000


def constant_arrivals(rate: float) -> Iterator[int]:
    """The i-th request at i / rate, rounded to the nanosecond: rounding does not add up."""
    numerator, denominator = rate.as_integer_ratio()
    return (index * _NS * denominator // numerator for index in count())


def random_arrivals(rate: float, gaps: Iterator[float]) -> Iterator[int]:
    """Gaps of mean 1 / rate, each rounded to the nanosecond; the first request at 0, as SGLang's benchmark has it.

    Not rescaled so that the last falls on n / rate, which vLLM's benchmark does: a rescaled process is not
    Poisson.
    """
    mean_gap_ns = _NS / rate
    now_ns = 0
    for gap in gaps:
        yield now_ns
        now_ns += round(gap * mean_gap_ns)


def arrival_times(pacing: Pacing, seed: int) -> Iterator[int]:
    """Arrival times in order."""
    rate, gaps = pacing.rate, _gaps(pacing, seed)
    if rate == "inf":
        return repeat(0)
    if isinstance(rate, float | int):
        return constant_arrivals(rate) if gaps is None else random_arrivals(rate, gaps)
    ranks = map(float, count()) if gaps is None else accumulate(chain((0.0,), gaps))
    return (round(time_s * _NS) for time_s in due_times(rate, ranks))


def _gaps(pacing: Pacing, seed: int) -> Iterator[float] | None:
    """Draws of mean 1, or None where nothing is drawn.

    vLLM's benchmark draws gaps from Gamma(shape = burstiness, scale = 1 / (rate x burstiness)).
    """
    if pacing.arrivals == "constant":
        return None
    if pacing.arrivals == "gamma":
        return gammas(seed, "arrivals", pacing.burstiness)
    return exponentials(seed, "arrivals")
