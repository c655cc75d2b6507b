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

    def share(self, factor: float) -> Share:
        """What it rests on, in integers, where kernels take `factor` times as long in a step."""
        _, measured, extrapolated, data_sheet = self
        return Share(round(measured * factor), round(extrapolated * factor), round(data_sheet * factor))

    def step(self, factor: float, added_ns: float, floor: StepCost) -> StepCost:
        """The cost of a step of these kernels: `factor` times their time and a constant, or its floor."""
        device_ns = max(round(self.ns * factor + added_ns), floor.compute_ns, floor.memory_ns)
        return StepCost(device_ns, *floor[1:4], self.extrapolated_ns > 0, self.share(factor))


NOTHING = Part(0.0, 0.0, 0.0, 0.0)
