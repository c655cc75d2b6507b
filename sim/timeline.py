"""Steps in equal bins of time, so that a picture of millions of them needs a few hundred points."""

from __future__ import annotations

import numpy as np
import pandas as pd

from .columns import Floats

NUM_BINS = 400


class Timeline:
    """Time-weighted means and largest values of the steps' columns, from time 0 to the end of the run."""

    def __init__(self, steps: pd.DataFrame, end_s: float) -> None:
        self._steps = steps
        self.start_s = steps["start_s"].to_numpy()
        next_start_s = np.append(self.start_s[1:], np.inf)
        # Steps in flight may overlap: what holds is what the last one planned.
        self.end_s = np.minimum(self.start_s + steps["duration_s"].to_numpy(), next_start_s)[: len(steps)]
        last_s = max([end_s, *self.end_s[-1:].tolist()])
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
