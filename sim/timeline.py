"""Steps in equal bins of time, so that a picture of millions of them needs a few hundred points."""

from __future__ import annotations

import numpy as np
import pandas as pd

from .columns import Floats

NUM_BINS = 400


class Timeline:
    """Time-weighted means and largest values of the steps' columns, from time 0 to `until_s` or the last step."""

    def __init__(self, steps: pd.DataFrame, until_s: float) -> None:
        self._steps = steps
        start_s, end_s = steps["start_s"].to_numpy(), (steps["start_s"] + steps["duration_s"]).to_numpy()
        # A step's counts hold from its planning on, until the next one's if that comes before its end.
        planned_s = np.maximum(start_s - steps["host_s"].to_numpy(), np.append(0.0, end_s)[:-1])
        self.start_s = np.minimum(start_s, planned_s)
        self.end_s = np.minimum(end_s, np.append(self.start_s, np.inf)[1:])
        last_s = max([until_s, *self.end_s[-1:].tolist()])
        self.edges_s = np.linspace(0.0, last_s or 1.0, NUM_BINS + 1)
        self.middles_s = (self.edges_s[1:] + self.edges_s[:-1]) / 2
        self._bins = np.clip(np.searchsorted(self.edges_s, self.start_s, side="right") - 1, 0, NUM_BINS - 1)

    def values(self, column: str) -> Floats:
        """A column of the steps."""
        return self._steps[column].to_numpy(dtype=np.float64)

    def mean(self, values: Floats) -> Floats:
        """Mean over each bin; the time in which no step ran counts as 0."""
        if len(values) == 0:
            return np.zeros(NUM_BINS)
        integral = np.concatenate([[0.0], np.cumsum(values * (self.end_s - self.start_s))])
        knots_s = np.column_stack([self.start_s, self.end_s]).ravel()
        levels = np.column_stack([integral[:-1], integral[1:]]).ravel()
        return np.asarray(np.diff(np.interp(self.edges_s, knots_s, levels)) / np.diff(self.edges_s))

    def largest(self, values: Floats) -> Floats:
        """Largest value of the steps that began in each bin, and no less than the mean."""
        result = self.mean(values)
        np.maximum.at(result, self._bins, values)
        return result

    def sums(self, values: Floats) -> Floats:
        """Sum over the steps that began in each bin."""
        return np.bincount(self._bins, weights=values, minlength=NUM_BINS).astype(np.float64)
