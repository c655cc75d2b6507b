"""Which requests of a measured run are its warm-up, and which a fit is made on: `7`, `1s`, `first:150`, `odd`."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from ...calibrate.comparison import Mask
from ...calibrate.runs.measured_run import MeasuredRun
from ..errors import ScenarioError

USUAL_S = 1.0
"""The first step of the RTX 4090's recorded run took the host 0.37 s: what an engine does for the first time, compiling
and loading among it, is over within its first second."""
LONGEST_STEP_S = 600.0
_WARMUP = re.compile(r"(\d+)|(\d+(?:\.\d+)?)s")
_PART = re.compile(r"(first|last):([1-9]\d*)|odd|even")


class Warmup(NamedTuple):
    """The first requests of a run, or those of its first seconds."""

    num_requests: int | None
    first_s: float
    is_usual: bool = False
    """Nobody asked for it: there is none where it would leave less than half of the requests."""

    @classmethod
    def parsed(cls, text: str | None) -> Warmup:
        """`7` requests or `1.5s`, the first second where left out; raises ScenarioError."""
        if text is None:
            return cls(None, USUAL_S, is_usual=True)
        found = _WARMUP.fullmatch(text)
        if found is None:
            raise ScenarioError(f"--warmup {text}", None, "write a number of requests, as 7, or of seconds, as 1.5s")
        return cls(int(found[1]), 0.0) if found[1] else cls(None, float(found[2]))

    def seconds(self, run: MeasuredRun) -> float:
        """Requests that arrive before it are the warm-up; ScenarioError where none is left."""
        arrivals = run.times("arrival_s")
        if self.num_requests is None:
            until = self.first_s
        else:
            until = float(arrivals[self.num_requests]) if self.num_requests < len(arrivals) else float("inf")
        if self.is_usual and np.mean(arrivals >= until) < 0.5:
            return 0.0
        if not (arrivals >= until).any():
            raise ScenarioError("--warmup", None, f"leaves none of the {len(arrivals)} requests")
        return until


class Part(NamedTuple):
    """Some of a run's requests, in order of arrival."""

    text: str

    @classmethod
    def parsed(cls, text: str, option: str) -> Part:
        """`first:150`, `last:150`, `odd` or `even`; raises ScenarioError naming the option."""
        if _PART.fullmatch(text) is None:
            raise ScenarioError(f"{option} {text}", None, "write first:150, last:150, odd or even")
        return cls(text)

    def of(self, run: MeasuredRun) -> Mask:
        """Which requests; ScenarioError where it leaves none of them."""
        index, (kind, _, count) = np.arange(len(run.requests)), self.text.partition(":")
        if kind in ("first", "last"):
            if int(count) >= len(index):
                says = f"leaves none of the run's {len(index)} requests to be tried on"
                raise ScenarioError(self.text, None, says)
            return np.asarray(index < int(count) if kind == "first" else index >= len(index) - int(count))
        return np.asarray(index % 2 == (0 if kind == "odd" else 1))


def parsed_seconds(text: str | None, option: str) -> tuple[float, ...] | None:
    """`0.39,0.17` as seconds, no seconds of `none`, None where left out; raises ScenarioError naming the option."""
    if text is None or text == "none":
        return None if text is None else ()
    try:
        seconds = tuple(float(part) for part in text.split(","))
    except ValueError:
        seconds = (-1.0,)
    if not all(0 <= one <= LONGEST_STEP_S for one in seconds):
        says = f"write none, or seconds with commas, as 0.39,0.17, each at most {LONGEST_STEP_S:g}"
        raise ScenarioError(f"{option} {text}", None, says)
    return seconds
