"""When requests come: integer nanoseconds from 0, evenly or as a Poisson process, without end."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Literal

from .draws import exponentials

_NS = 1_000_000_000


def constant_arrivals(rate: float) -> Iterator[int]:
    """The i-th request at i / rate, rounded to the nanosecond: rounding does not add up."""
    numerator, denominator = rate.as_integer_ratio()
    return (index * _NS * denominator // numerator for index in count())


def poisson_arrivals(rate: float, seed: int) -> Iterator[int]:
    """Exponential gaps, each rounded to the nanosecond; the first request at 0, as SGLang's benchmark has it.

    Not rescaled so that the last falls on n / rate, which vLLM's benchmark does: a rescaled process is not
    Poisson.
    """
    mean_gap_ns = _NS / rate
    now_ns = 0
    for gap in exponentials(seed, "arrivals"):
        yield now_ns
        now_ns += round(gap * mean_gap_ns)


def arrival_times(kind: Literal["poisson", "constant"], rate: float, seed: int) -> Iterator[int]:
    """Arrival times in order."""
    return poisson_arrivals(rate, seed) if kind == "poisson" else constant_arrivals(rate)
