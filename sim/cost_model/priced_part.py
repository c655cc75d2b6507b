"""Device time of some of a step's kernels, and how much of it rests on what."""

from __future__ import annotations

from typing import NamedTuple

from ...policies.core.estimator import Share, StepCost
from .curve_grid import Basis


class Part(NamedTuple):
    """Device time of some of a step's kernels in nanoseconds, and how much of it rests on what."""

    ns: float
    measured_ns: float
    extrapolated_ns: float
    data_sheet_ns: float

    def plus(self, ns: float, basis: Basis) -> Part:
        """With a further kernel."""
        total, measured, extrapolated, data_sheet = self
        if basis == Basis.MEASURED:
            measured += ns
        elif basis == Basis.EXTRAPOLATED:
            extrapolated += ns
        elif basis == Basis.DATA_SHEET:
            data_sheet += ns
        return Part(total + ns, measured, extrapolated, data_sheet)

    def with_residual(self, factor: float, added_ns: float) -> Part:
        """The whole step's time, where this is that of its kernels; what it rests on stays."""
        return self._replace(ns=self.ns * factor + added_ns)

    def share(self) -> Share:
        """What it rests on, in integers."""
        return Share(round(self.measured_ns), round(self.extrapolated_ns), round(self.data_sheet_ns))

    def held_to(self, floor: StepCost) -> StepCost:
        """The cost of a step that takes so long, or its floor."""
        device_ns = max(round(self.ns), floor.compute_ns, floor.memory_ns)
        return StepCost(device_ns, *floor[1:4], self.extrapolated_ns > 0, self.share())


NOTHING = Part(0.0, 0.0, 0.0, 0.0)
