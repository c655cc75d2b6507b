"""Step boundaries as SimPy events: after every other event of their nanosecond."""

from __future__ import annotations

import simpy
from simpy.events import NORMAL, Event

AFTER_ALL = NORMAL + 1
"""Event priority of step boundaries: after every other event of their nanosecond."""


class StepEnd(Event):
    """A step boundary, some nanoseconds from now."""

    def __init__(self, env: simpy.Environment, delay_ns: int) -> None:
        assert type(delay_ns) is int, delay_ns  # a float would silently make the clock a float
        self.env = env
        self.callbacks = []
        self._value = None
        self._ok = True
        self._defused = False
        env.schedule(self, AFTER_ALL, delay_ns)  # type: ignore[arg-type] # SimPy compares priorities as numbers
