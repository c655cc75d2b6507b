"""When requests come: integer nanoseconds from 0, evenly or at random, at a rate that may change, without end."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, chain, count, repeat
from typing import Literal

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


def arrival_times(kind: Literal["poisson", "constant"], rate: float, seed: int) -> Iterator[int]:
    """Arrival times in order, at a rate that stays."""
    return random_arrivals(rate, exponentials(seed, "arrivals")) if kind == "poisson" else constant_arrivals(rate)


def paced_times(pacing: Pacing, seed: int) -> Iterator[int]:
    """Arrival times in order, as a generator's pacing asks for.

    vLLM's benchmark draws gaps from Gamma(shape = burstiness, scale = 1 / (rate x burstiness)).
    """
    kind, rate = pacing.arrivals, pacing.rate
    if rate == "inf":
        return repeat(0)
    if isinstance(rate, float | int):
        if kind == "gamma":
            return random_arrivals(rate, gammas(seed, "arrivals", pacing.burstiness))
        return arrival_times(kind, rate, seed)
    return (round(time_s * _NS) for time_s in due_times(rate, _ranks(pacing, seed)))


def _ranks(pacing: Pacing, seed: int) -> Iterator[float]:
    """Arrival times of the process at rate 1."""
    if pacing.arrivals == "constant":
        return map(float, count())
    bursty = pacing.arrivals == "gamma"
    gaps = gammas(seed, "arrivals", pacing.burstiness) if bursty else exponentials(seed, "arrivals")
    return accumulate(chain((0.0,), gaps))
