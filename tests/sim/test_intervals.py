"""Intervals hold the truth about as often as they say."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from llmsim.sim.columns import Floats
from llmsim.sim.gaps import GapPool
from llmsim.sim.intervals import NUM_BATCHES, Intervals, gap_intervals, half_width, intervals
from llmsim.sim.student_t import student_t


def of_gaps(values: Floats) -> Intervals:
    """The same values as gaps in nanoseconds, back in seconds."""
    pool = GapPool()
    for gap_ns in np.rint(values * 1e9).astype(int).tolist():
        pool.add(gap_ns, 1)
    return gap_intervals(pool.batches())


def coverage(exact: float, name: str, num_repeats: int = 300) -> float:
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(num_repeats):
        interval = intervals(rng.exponential(1.0, 4000))[name]
        assert interval is not None
        hits += interval[0] <= exact <= interval[1]
    return hits / num_repeats


@pytest.mark.parametrize(("name", "exact"), [("mean", 1.0), ("p50", math.log(2)), ("p99", math.log(100))])
def test_intervals_cover_the_truth(name: str, exact: float) -> None:
    assert 0.92 <= coverage(exact, name) <= 0.985


def waits(rng: np.random.Generator, load: float, num: int) -> Floats:
    """Of an M/M/1 queue whose mean service is 1, by Lindley's recursion."""
    steps = rng.exponential(1.0, num) - rng.exponential(1 / load, num)
    walk = np.concatenate([[0.0], np.cumsum(steps)[:-1]])
    return np.asarray(walk - np.minimum.accumulate(walk))


def test_intervals_of_a_queues_tail_cover_it_too() -> None:
    """The wait's P99 in an M/M/1 queue: P(W > w) = load x exp(-(1 - load) w)."""
    rng, load = np.random.default_rng(1), 0.5
    exact = math.log(load / 0.01) / (1 - load)
    found = [intervals(waits(rng, load, 11_000)[1000:])["p99"] for _ in range(200)]
    hits = [interval is not None and interval[0] <= exact <= interval[1] for interval in found]
    assert np.mean(hits) >= 0.9


@pytest.mark.parametrize(("first", "there", "back"), [(1000.0, np.log, np.exp), (0.0, np.sqrt, np.square)])
def test_interval_of_the_mean_is_that_of_batch_means_by_logarithms_or_square_roots(
    first: float, there: Callable[[Floats], Floats], back: Callable[[Floats], Floats]
) -> None:
    values = np.arange(first, first + 400)
    means = there(values.reshape(NUM_BATCHES, -1).mean(axis=1))
    centre = float(there(values.mean()))
    half = student_t(NUM_BATCHES - 1) * math.sqrt(((means - centre) ** 2).sum() / (NUM_BATCHES - 1) / NUM_BATCHES)
    unbiased = centre - (means.mean() - centre) / (NUM_BATCHES - 1)
    np.testing.assert_allclose(intervals(values)["mean"], back(np.array([max(0.0, unbiased - half), unbiased + half])))


def test_intervals_of_gaps_are_those_of_the_same_values_in_a_row() -> None:
    values = np.random.default_rng(2).integers(1, 10**6, 4000) / 1e9
    for name, interval in of_gaps(values).items():
        np.testing.assert_allclose(interval, intervals(values)[name], rtol=1e-9)


def test_waits_that_are_mostly_nothing_have_an_interval_from_nothing_on() -> None:
    few = np.where(np.arange(1000) % 400 < 300, 0.0, 1.0)
    assert intervals(np.zeros(1000))["p99"] == [0.0, 0.0]
    low, high = intervals(few)["mean"] or (-1.0, 2.0)
    assert 0 <= low < few.mean() < high < 1


def test_half_width_is_of_values_of_either_sign() -> None:
    values = np.random.default_rng(3).normal(0.0, 1.0, 2000)
    width = half_width(values, lambda v: float(np.mean(v)))
    assert width is not None
    assert 0.01 < width < 0.15


def test_too_few_values_give_no_interval() -> None:
    names = ("mean", "p50", "p90", "p95", "p99")
    assert intervals(np.arange(199.0)) == of_gaps(np.arange(199.0)) == dict.fromkeys(names)
    assert None not in intervals(np.arange(200.0)).values()
    assert None not in of_gaps(np.arange(200.0)).values()
