"""A stretch of a run's time, and counts over it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .columns import Ints


class Window(NamedTuple):
    """The time from `start_ns` to `end_ns`."""

    start_ns: int
    end_ns: int

    @property
    def length_ns(self) -> int:
        """Its length, 0 where it ends before it starts."""
        return max(0, self.end_ns - self.start_ns)

    def quarter(self, index: int) -> Window:
        """One of its four quarters."""
        cuts = [self.start_ns + self.length_ns * i // 4 for i in (index, index + 1)]
        return Window(cuts[0], cuts[1])

    def overlap(self, start_ns: Ints, end_ns: Ints) -> Ints:
        """How much of each span lies in it."""
        low, high = np.maximum(start_ns, self.start_ns), np.minimum(end_ns, self.end_ns)
        return np.asarray(np.maximum(high - low, 0))


class Level:
    """A count over time, piecewise constant: its integral and its largest value."""

    def __init__(self) -> None:
        self.integral_ns = 0
        self.largest = 0

    def add(self, value: Ints, dt_ns: Ints) -> None:
        """It held each value for so long."""
        self.integral_ns += int(np.dot(value, dt_ns))
        self.largest = max(self.largest, int(np.max(value, initial=0, where=dt_ns > 0)))

    def summary(self, length_ns: int, scale: int = 1) -> dict[str, float | None]:
        """Mean over so long a time and maximum, both divided by `scale`; None where no time passed."""
        if length_ns == 0 or scale == 0:
            return {"mean": None, "max": None}
        largest = self.largest if scale == 1 else self.largest / scale
        return {"mean": self.integral_ns / length_ns / scale, "max": largest}
