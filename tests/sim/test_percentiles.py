"""Percentiles are numpy's, weights or not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmsim.sim.gaps import Gaps
from llmsim.sim.percentiles import distribution, gap_distribution, weighted_percentiles

PAIRS = st.lists(st.tuples(st.integers(0, 10**12), st.integers(0, 9)), min_size=1, max_size=40).filter(
    lambda pairs: any(count for _, count in pairs)
)


@given(PAIRS, st.lists(st.floats(0, 100), min_size=1, max_size=5))
def test_weighted_percentiles_equal_those_of_numpy_on_the_expanded_sample(
    pairs: list[tuple[int, int]], percentages: list[float]
) -> None:
    values, counts = np.array(sorted(pairs)).T
    expanded = np.repeat(values / 1e9, counts)
    expected = np.percentile(expanded, percentages).tolist()
    assert weighted_percentiles(values / 1e9, counts, percentages) == expected


@given(PAIRS)
def test_gaps_are_distributed_as_if_each_token_had_its_own(pairs: list[tuple[int, int]]) -> None:
    values, counts = np.array(sorted(pairs)).T
    weighted, plain = gap_distribution(Gaps(values, counts)), distribution(np.repeat(values / 1e9, counts))
    assert weighted.pop("mean") == pytest.approx(plain.pop("mean"))
    assert weighted == plain


def test_percentiles_of_known_samples() -> None:
    hundred = distribution(np.arange(101.0))
    assert hundred == {"mean": 50.0, "p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "max": 100.0}
    one = distribution(np.array([3.0]))
    assert set(one.values()) == {3.0}


def test_an_empty_sample_has_no_figures() -> None:
    nothing = dict.fromkeys(("mean", "p50", "p90", "p95", "p99", "max"))
    assert distribution(np.array([])) == nothing
    assert gap_distribution(Gaps(np.array([5]), np.array([0]))) == nothing
