"""When requests come: integer nanoseconds from 0, evenly or at random, at a rate that may change, without end."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, chain, count, repeat
from typing import Literal

from ..errors import ScenarioError
from ..schema_pacing import Pacing
from .draws import exponentials, gammas, rounds
from .number_files import read_numbers
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
    """Arrival times in order, as a generator's pacing asks for. Raises ScenarioError for a wrong file of gaps.

    vLLM's benchmark draws gaps from Gamma(shape = burstiness, scale = 1 / (rate x burstiness)).
    """
    kind, rate = pacing.arrivals, pacing.rate
    if rate == "inf":
        return repeat(0)
    if isinstance(rate, float | int):
        return constant_arrivals(rate) if kind == "constant" else random_arrivals(rate, _gaps(pacing, seed))
    ranks = map(float, count()) if kind == "constant" else accumulate(chain((0.0,), _gaps(pacing, seed)))
    return (round(time_s * _NS) for time_s in due_times(rate, ranks))


def _gaps(pacing: Pacing, seed: int) -> Iterator[float]:
    """Gaps of mean 1 between arrivals."""
    if pacing.arrivals == "gamma":
        return gammas(seed, "arrivals", pacing.burstiness)
    if pacing.gaps is None:
        return exponentials(seed, "arrivals")
    gaps = read_numbers(pacing.gaps.file, pacing.gaps.column, lowest=0)
    if not gaps.any():
        raise ScenarioError(pacing.gaps.file, None, "all gaps are 0: where all come at once, rate is inf")
    shares = (gaps / gaps.mean()).tolist()
    return map(shares.__getitem__, rounds(seed, "arrivals", len(shares)))
