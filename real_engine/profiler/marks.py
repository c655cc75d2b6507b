"""When a device got where: marks set between kernels, read once it has passed them all."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import torch

from ..streams import host_clock


class Interval(NamedTuple):
    """From one mark to the next."""

    begins: str
    ends: str
    us: float


class Marks(Protocol):
    """Marks of one step."""

    def set(self, label: str) -> None:
        """Note when the device gets here."""
        ...

    def read(self) -> list[Interval]:
        """The times between neighbours, once; waits for the device. The next step begins with no marks."""
        ...

    def forget(self) -> None:
        """Those of a step that was broken off."""
        ...


class HostMarks:
    """A CPU has got wherever its program has."""

    def __init__(self) -> None:
        self._clock = host_clock()
        self._labels: list[str] = []
        self._times_ns: list[int] = []

    def set(self, label: str) -> None:
        """Note the clock."""
        self._labels.append(label)
        self._times_ns.append(self._clock())

    def forget(self) -> None:
        """Those of a step that was broken off."""
        self._labels, self._times_ns = [], []

    def read(self) -> list[Interval]:
        """The times between neighbours."""
        labels, times_ns = self._labels, self._times_ns
        self._labels, self._times_ns = [], []
        steps = zip(labels, labels[1:], times_ns, times_ns[1:], strict=False)
        return [Interval(before, after, (end - start) / 1e3) for before, after, start, end in steps]


class DeviceMarks:
    """Events on a GPU's stream.

    Kernels shorter than their launch would leave the device waiting for the host, and the wait would count: a long
    kernel in front keeps it busy until the whole step is queued. A queue holds about a thousand entries, so only the
    first marks of a step are set.
    """

    MOST = 400
    HOLD_CYCLES = 20_000_000
    """10 ms at 2 GHz, mostly enough for a step's launches and events; where it is not, the next step is held longer."""
    MOST_HOLD_CYCLES = 80_000_000

    def __init__(self) -> None:
        self._labels: list[str] = []
        self._events: list[torch.cuda.Event] = []
        self._hold_cycles = self.HOLD_CYCLES

    def set(self, label: str) -> None:
        """Record an event."""
        if not self._labels:
            torch.cuda._sleep(self._hold_cycles)
        if len(self._labels) < self.MOST or label in ("logits(", "logits)", "greedy(", "greedy)"):
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            self._labels.append(label)
            self._events.append(event)

    def forget(self) -> None:
        """Those of a step that was broken off."""
        self._labels, self._events = [], []

    def read(self) -> list[Interval]:
        """The times between neighbours."""
        if self._events and self._events[0].query():  # the device was there before the step was queued
            self._hold_cycles = min(2 * self._hold_cycles, self.MOST_HOLD_CYCLES)
        torch.cuda.synchronize()
        labels, events = self._labels, self._events
        self._labels, self._events = [], []
        pairs = zip(labels, labels[1:], events, events[1:], strict=False)
        return [Interval(before, after, start.elapsed_time(end) * 1e3) for before, after, start, end in pairs]


def marks_for(device: torch.device) -> Marks:
    """The marks of a kind of device."""
    return DeviceMarks() if device.type == "cuda" else HostMarks()
