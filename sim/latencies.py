"""What finished requests experienced, and whether it was good enough."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .columns import NS_PER_S, Floats, RequestColumns

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Slo:
    """Upper bounds in seconds that a request must keep, each or None; a request's ITL is its longest gap."""

    ttft_s: float | None = None
    tpot_s: float | None = None
    itl_s: float | None = None
    e2e_s: float | None = None

    def is_empty(self) -> bool:
        """Whether nothing is bounded."""
        return self == Slo()


class Latencies:
    """What finished requests experienced, in seconds; arrays over the requests given."""

    def __init__(self, finished: RequestColumns) -> None:
        first, last, sent = finished.first_token_ns, finished.last_token_ns, finished.sent_ns
        self.ttft_s: Floats = (first - sent) / NS_PER_S
        self.e2e_s: Floats = (last - sent) / NS_PER_S
        self.queue_s: Floats = (finished.first_scheduled_ns - sent) / NS_PER_S
        self.tpot_s: Floats = (last - first) / np.maximum(finished.output_tokens - 1, 1) / NS_PER_S
        """0 for a single output token."""
        self.has_tpot: Mask = finished.output_tokens > 1
        self.max_gap_s: Floats = np.nan_to_num(finished.max_gap_ns, nan=0.0) / NS_PER_S

    def meets(self, slo: Slo) -> Mask:
        """Which requests keep every bound."""
        tpot_s = np.where(self.has_tpot, self.tpot_s, 0.0)
        bounds = [
            (self.ttft_s, slo.ttft_s),
            (tpot_s, slo.tpot_s),
            (self.max_gap_s, slo.itl_s),
            (self.e2e_s, slo.e2e_s),
        ]
        kept = [values <= bound for values, bound in bounds if bound is not None]
        return np.asarray(np.logical_and.reduce([np.ones(len(tpot_s), dtype=np.bool_), *kept]))
