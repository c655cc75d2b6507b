"""A trace and its synthetic twin, statistic by statistic, and how far apart they may be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from rich import box
from rich.table import Table

from ...sim.percentiles import weighted_percentiles
from ..tables import MISSING, POINTS
from ..traffic_report import Traffic, traffic_report

RELATIVE_BOUND = 0.05
RATE_BOUND = 0.02
FOUND_SHARES = (25, 50, 75)
"""Per cent of what a cache without end finds in the trace: sizes at which finite caches are compared."""


@dataclass(frozen=True, slots=True)
class Statistic:
    """A figure of both; its error is relative, or the difference where it `is_share`."""

    name: str
    trace: float
    synthetic: float
    is_share: bool = False
    is_bounded: bool = True

    @property
    def error(self) -> float | None:
        """None where the trace's figure is 0 and the other is not."""
        if self.is_share or self.trace == self.synthetic:
            return self.synthetic - self.trace
        return self.synthetic / self.trace - 1 if self.trace else None

    @property
    def bound(self) -> float | None:
        """How large the error may be, to either side; None where none is promised."""
        if not self.is_bounded:
            return None
        return RATE_BOUND if self.is_share else RELATIVE_BOUND

    @property
    def is_within(self) -> bool:
        """Whether it keeps its bound."""
        return self.bound is None or (self.error is not None and abs(self.error) <= self.bound)

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        names = ("name", "trace", "synthetic", "error", "bound")
        return {name: getattr(self, name) for name in names} | {"within": self.is_within}


def compared(trace: Traffic, synthetic: Traffic) -> list[Statistic]:
    """Lengths, arrivals, and what prompts share: without end, and by the size of an LRU cache."""
    one, other = traffic_report(trace), traffic_report(synthetic)
    lengths = [
        Statistic(f"{what} tokens, {title}", one[f"{what}_tokens"][point], other[f"{what}_tokens"][point])
        for what in ("prompt", "output")
        for title, point in POINTS
        if point != "max"
    ]
    names = {"rate": "requests/s", "arrival_cv": "arrival CV"}
    arrivals = [Statistic(name, one[key], other[key]) for key, name in names.items() if one[key] is not None]
    names = {"ideal_hit_rate": "ideal hit rate, of tokens", "block_hit_rate": "ideal hit rate, of blocks"}
    sharing = [Statistic(name, one[key], other[key], is_share=True) for key, name in names.items()]
    prefixes = Statistic(
        "requests that find a prefix", one["shared_prefix_share"], other["shared_prefix_share"], True, False
    )
    return [*lengths, *arrivals, *sharing, prefixes, *_by_cache_size(trace, synthetic)]


def _by_cache_size(trace: Traffic, synthetic: Traffic) -> list[Statistic]:
    if not len(trace.distances):
        return []
    sizes = np.unique(np.ceil(weighted_percentiles(trace.distances, trace.found, FOUND_SHARES)).astype(np.int64))
    rates = zip(sizes, trace.hit_rates(sizes), synthetic.hit_rates(sizes), strict=True)
    return [
        Statistic(f"LRU cache of {size:,} blocks", float(one), float(other), is_share=True, is_bounded=False)
        for size, one, other in rates
    ]


def comparison_table(title: str, statistics: list[Statistic]) -> Table:
    """For people, 80 columns wide."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    for name in ("trace", "synthetic", "error", "bound"):
        table.add_column(name, justify="right", no_wrap=True)
    for statistic in statistics:
        bound = "" if statistic.bound is None else f"{statistic.bound:.2f}" if statistic.is_share else "5%"
        figures = (_figure(statistic, statistic.trace), _figure(statistic, statistic.synthetic))
        error = _error(statistic) if statistic.is_within else f"[yellow]{_error(statistic)}[/]"
        table.add_row(statistic.name, *figures, error, bound)
    return table


def _figure(statistic: Statistic, value: float) -> str:
    if statistic.is_share:
        return f"{value:.4f}"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _error(statistic: Statistic) -> str:
    if statistic.error is None:
        return MISSING
    return f"{statistic.error:+.4f}" if statistic.is_share else f"{statistic.error:+.2%}"
