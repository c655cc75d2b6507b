"""MSER-5 cuts what a cold start adds and nothing of a series that is steady from the start."""

from __future__ import annotations

import numpy as np
import pytest

from llmsim.sim.columns import Floats
from llmsim.sim.warmup import mser5


def plain(values: Floats) -> int:
    """The rule as it is written, one candidate after another."""
    means = [float(np.mean(values[i : i + 5])) for i in range(0, len(values) // 5 * 5, 5)]
    spread = [float(np.var(means[d:])) / (len(means) - d) for d in range(len(means) // 2 + 1)]
    return 5 * int(np.argmin(spread))


@pytest.mark.parametrize("seed", range(20))
def test_the_cut_is_that_of_the_rule_written_out(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.exponential(1.0, 400) + 5 * np.exp(-np.arange(400) / rng.uniform(5, 60))
    cut = plain(values)
    assert mser5(values) == (cut if cut < 200 else None)


def test_a_cold_start_is_cut_and_a_steady_series_is_kept_nearly_whole() -> None:
    rng = np.random.default_rng(1)
    steady = rng.normal(10.0, 1.0, 2000)
    cold = steady + np.where(np.arange(2000) < 300, 20.0, 0.0)
    assert mser5(cold) == pytest.approx(300, abs=10)
    kept = mser5(steady)
    assert kept is not None
    assert kept < 200


def test_what_never_settles_or_is_short_has_no_cut() -> None:
    assert mser5(np.arange(1000.0)) is None
    assert mser5(np.ones(99)) is None
    assert mser5(np.ones(100)) == 0
    assert mser5(np.zeros(100)) == 0
