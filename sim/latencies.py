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
    """What finished requests experienced, in seconds; arrays over the requests given, made when asked for."""

    def __init__(self, finished: RequestColumns) -> None:
        self._of = finished

    @property
    def ttft_s(self) -> Floats:
        """From sent to first token."""
        return (self._of.first_token_ns - self._of.sent_ns) / NS_PER_S

    @property
    def e2e_s(self) -> Floats:
        """From sent to last token."""
        return (self._of.last_token_ns - self._of.sent_ns) / NS_PER_S

    @property
    def queue_s(self) -> Floats:
        """From sent to the start of the first step that computed something for it."""
        return (self._of.first_scheduled_ns - self._of.sent_ns) / NS_PER_S

    @property
    def has_tpot(self) -> Mask:
        """Whether there was more than one output token."""
        return self._of.output_tokens > 1

    @property
    def tpot_s(self) -> Floats:
        """Mean time of an output token after the first; 0 where there is none."""
        after_first = np.maximum(self._of.output_tokens - 1, 1)
        return np.where(self.has_tpot, (self._of.last_token_ns - self._of.first_token_ns) / after_first / NS_PER_S, 0.0)

    @property
    def max_gap_s(self) -> Floats:
        """Longest gap between two output chunks; 0 where there is none."""
        return np.nan_to_num(self._of.max_gap_ns, nan=0.0) / NS_PER_S

    def meets(self, slo: Slo) -> Mask:
        """Which requests keep every bound."""
        bounds = [
            (self.ttft_s, slo.ttft_s),
            (self.tpot_s, slo.tpot_s),
            (self.max_gap_s, slo.itl_s),
            (self.e2e_s, slo.e2e_s),
        ]
        kept = [values <= bound for values, bound in bounds if bound is not None]
        everyone = np.ones(len(self._of.sent_ns), dtype=np.bool_)
        return np.asarray(np.logical_and.reduce([everyone, *kept]))
