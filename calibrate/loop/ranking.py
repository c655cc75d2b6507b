"""Whether a simulator ranks policies as the device does, over the differences that are more than noise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from .verdicts import Figures, noise_of

RANKED = (("ttft_s", "mean"), ("ttft_s", "p99"), ("tpot_s", "mean"), ("itl_s", "p99"), ("e2e_s", "mean"))
"""What a user compares policies by."""


class Pair(NamedTuple):
    """Two policies by one statistic; differences as shares of the smaller measured value."""

    metric: str
    statistic: str
    first: str
    second: str
    measured: float
    """By how much the second is larger, on the device."""
    simulated: float
    exceeds_noise: bool
    agrees: bool
    """Whether both say that the same one is larger."""


class Ranked(NamedTuple):
    """All policies by one statistic."""

    metric: str
    statistic: str
    noise: float
    """The largest difference between two repeats of any of the policies, as a share of their mean."""
    measured: dict[str, float | None]
    """None: a repeat has no such statistic, as where no request finished or each has one token; nor has the pair."""
    simulated: dict[str, float | None]
    pairs: list[Pair]

    @property
    def counted(self) -> list[Pair]:
        """The pairs that differ by more than the noise."""
        return [pair for pair in self.pairs if pair.exceeds_noise]


def ranked(runs: Mapping[str, Sequence[Figures]], simulated: Mapping[str, Figures]) -> list[Ranked]:
    """Every pair of policies by each statistic; `runs` holds at least two repeats of each policy."""
    return [_ranked(metric, statistic, runs, simulated) for metric, statistic in RANKED]


def _ranked(
    metric: str, statistic: str, runs: Mapping[str, Sequence[Figures]], simulated: Mapping[str, Figures]
) -> Ranked:
    repeats = {name: _known(figures[metric][statistic] for figures in found) for name, found in runs.items()}
    measured = {name: sum(values) / len(values) for name, values in repeats.items() if values}
    ours = {name: figures[metric][statistic] for name, figures in simulated.items()}
    noise = max((noise_of(values) or 0.0 for values in repeats.values() if values), default=0.0)
    pairs = []
    for first, second in combinations(measured, 2):
        before, after = ours[first], ours[second]
        if before is None or after is None:
            continue
        difference, predicted = measured[second] - measured[first], after - before
        unit = min(measured[first], measured[second]) or 1.0
        pairs.append(
            Pair(
                *(metric, statistic, first, second, difference / unit, predicted / unit),
                exceeds_noise=abs(difference) / unit > noise,
                agrees=difference * predicted > 0,
            )
        )
    return Ranked(metric, statistic, noise, {name: measured.get(name) for name in runs}, ours, pairs)


def _known(values: Iterable[float | None]) -> list[float]:
    """All of them, or none where one is missing."""
    found = list(values)
    known = [value for value in found if value is not None]
    return known if len(known) == len(found) else []
