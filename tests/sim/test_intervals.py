"""Intervals hold the truth about as often as they say."""

from __future__ import annotations

import math

import numpy as np

from llmsim.sim.intervals import NUM_BATCHES, STUDENT_T, batch_interval, intervals


def coverage(exact: float, name: str) -> float:
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(300):
        interval = intervals(rng.exponential(1.0, 4000))[name]
        assert interval is not None
        hits += interval[0] <= exact <= interval[1]
    return hits / 300


def test_intervals_cover_the_truth() -> None:
    assert 0.91 <= coverage(1.0, "mean") <= 0.98
    assert 0.91 <= coverage(math.log(2), "p50") <= 0.98
    assert 0.91 <= coverage(math.log(100), "p99") <= 0.99


def test_interval_of_the_mean_is_that_of_batch_means() -> None:
    values = np.arange(400.0)
    means = values.reshape(NUM_BATCHES, -1).mean(axis=1)
    half = STUDENT_T * means.std(ddof=1) / math.sqrt(NUM_BATCHES)
    interval = batch_interval(values, lambda v: float(np.mean(v)))
    np.testing.assert_allclose(interval, [means.mean() - half, means.mean() + half])


def test_too_few_values_give_no_interval() -> None:
    assert intervals(np.arange(199.0)) == {"mean": None, "p50": None, "p99": None}
    assert None not in intervals(np.arange(200.0)).values()
