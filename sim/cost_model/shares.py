"""What a run's device time rests on: measured points, what lies between or beyond them, or a data sheet."""

from __future__ import annotations

from typing import Any

from ...policies.core.estimator import Share


class TimeShares:
    """Sums over the steps that a measured profile priced; empty where none did."""

    def __init__(self) -> None:
        self._device_ns = 0
        self._sums = [0, 0, 0]

    def add(self, device_ns: int, share: Share) -> None:
        """One step."""
        self._device_ns += device_ns
        for i, ns in enumerate(share):
            self._sums[i] += ns

    def add_first(self, num_steps: int, device_ns: Any, share: Share) -> None:
        """The first steps of a stretch, given as arrays."""
        self._device_ns += int(device_ns[:num_steps].sum())
        for i, column in enumerate(share):
            self._sums[i] += int(column[:num_steps].sum())

    def summary(self) -> dict[str, float]:
        """Shares of the device time; without measurements all of it is from the data sheet.

        A residual counts as interpolated: it was fitted to whole steps.
        """
        if not self._device_ns:
            return {"measured": 0.0, "interpolated": 0.0, "extrapolated": 0.0, "data_sheet": 1.0}
        measured, extrapolated, data_sheet = (ns / self._device_ns for ns in self._sums)
        interpolated = max(1 - measured - extrapolated - data_sheet, 0.0)
        return {
            "measured": measured,
            "interpolated": interpolated,
            "extrapolated": extrapolated,
            "data_sheet": data_sheet,
        }
