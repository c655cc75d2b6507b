"""`--within 0.05`, `--within ttft=0.16`, `--within ttft.p50=0.16`: errors that a validation must not exceed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...calibrate.comparison import STATISTICS, Errors
from ..errors import ScenarioError

BOUNDED = {"ttft": "ttft_s", "tpot": "tpot_s", "e2e": "e2e_s"}
"""What a bound without a name is for."""
METRICS = BOUNDED | {"itl": "itl_s", "queue": "queue_s", "scheduled_to_first_token": "scheduled_to_first_token_s"}


class Bound(NamedTuple):
    """The largest |error| of some statistics of a latency."""

    metric: str | None
    """None: of TTFT, TPOT and E2E."""
    statistic: str | None
    """None: of all."""
    share: float

    @classmethod
    def parsed(cls, text: str) -> Bound:
        """Raises ScenarioError where it is none."""
        name, _, number = text.rpartition("=")
        metric, _, statistic = name.partition(".")
        try:
            share = float(number)
        except ValueError:
            share = -1.0
        if not 0 <= share < float("inf"):
            says = "write a share, as 0.05, or ttft=0.16, or ttft.p50=0.16"
            raise ScenarioError(f"--within {text}", None, says)
        if metric and metric not in METRICS:
            raise ScenarioError(f"--within {text}", None, f"'{metric}' is unknown; choose {', '.join(METRICS)}")
        if statistic and statistic not in STATISTICS:
            raise ScenarioError(f"--within {text}", None, f"'{statistic}' is unknown; choose {', '.join(STATISTICS)}")
        return cls(metric or None, statistic or None, share)


def exceeded(bounds: Iterable[Bound], errors: Errors) -> list[str]:
    """A sentence for each error beyond its bound; the narrowest name decides: ttft.p50 before ttft before all."""
    by_name = {(bound.metric, bound.statistic): bound.share for bound in bounds}
    wrong = []
    for metric, key in METRICS.items():
        for statistic in STATISTICS:
            share = _share(by_name, metric, statistic)
            error = errors.get(key, {}).get(statistic, {}).get("error")
            if share is not None and error is not None and abs(error) > share:
                wrong.append(f"{metric} {statistic} is off by {error:+.1%}, more than {share:.1%}")
    return wrong


def _share(by_name: dict[tuple[str | None, str | None], float], metric: str, statistic: str) -> float | None:
    for name in ((metric, statistic), (metric, None)):
        if name in by_name:
            return by_name[name]
    return by_name.get((None, None)) if metric in BOUNDED else None
