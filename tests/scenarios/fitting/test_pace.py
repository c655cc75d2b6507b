"""The pace of a trace: the rate stays or changes as a test decides, and the gaps are the trace's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from llmsim.scenarios.fitting.pace import MAX_GAP, chi_squared, fitted_pace, gap_table

Stream = np.random.Generator


def in_ns(gaps_s: Any) -> Any:
    return np.rint(np.concatenate([[0.0], np.cumsum(gaps_s)]) * 1e9).astype(np.int64)


@pytest.mark.parametrize(
    ("degrees", "quantile"), [(5, 20.515), (10, 29.588), (20, 45.315), (50, 86.661), (100, 149.449)]
)
def test_chi_squared_is_that_of_the_tables(degrees: int, quantile: float) -> None:
    """The 0.999 quantiles of NIST's handbook, 1.3.6.7.4; the approximation is 1.2 % off for 5 degrees."""
    assert chi_squared(degrees) == pytest.approx(quantile, rel=0.012)


@pytest.mark.parametrize(
    "draw",
    [
        lambda stream: stream.exponential(0.25, 5000),
        lambda stream: stream.gamma(0.04, 6.25, 5000),  # CV 5
        lambda stream: np.where(stream.random(5000) < 0.1, 3.0, 0.0),  # ticks
        lambda stream: np.full(5000, 0.5),
    ],
    ids=["poisson", "bursts", "ticks", "constant"],
)
def test_a_rate_that_stays_is_found_to_stay(draw: Any) -> None:
    for seed in range(10):
        gaps_s = draw(np.random.default_rng(seed))
        pace = fitted_pace(in_ns(gaps_s), 20_000)
        assert pace.reason.startswith("the rate of arrivals stays: chi-squared ")
        assert pace.keys == {"rate": pytest.approx(1 / gaps_s.mean()), "arrivals": "empirical"}


def test_a_rate_that_changes_is_a_day_of_the_trace_s_own_length() -> None:
    """From 2 to 6 requests a second and back, in an hour."""
    stream = np.random.default_rng(1)
    fine_s = np.linspace(0, 3600, 10_001)
    expected = np.concatenate([[0.0], np.cumsum(np.interp(fine_s, [0, 1800, 3600], [2, 6, 2])[:-1] * 0.36)])
    times_s = np.interp(np.cumsum(stream.exponential(1, 14_000)), expected, fine_s)
    times_s = times_s[times_s < 3600]
    pace = fitted_pace(in_ns(np.diff(times_s)), 20_000)
    assert pace.reason.startswith("the rate of arrivals changes: chi-squared ")
    day = pace.keys["rate"]["day"]
    assert day["length_s"] == pytest.approx(times_s[-1] - times_s[0])
    rates = np.array(day["rates"])
    borders = np.interp(np.arange(48) * 75.0, [0, 1800, 3600], [2, 6, 2])
    assert rates.mean() * day["length_s"] == pytest.approx(len(times_s) - 1)
    assert rates == pytest.approx(borders, abs=5 * (6 / 150) ** 0.5)  # sqrt(rate / (2 x 75 s))
    assert pace.gaps is not None
    assert pace.gaps.std() / pace.gaps.mean() == pytest.approx(1.0, abs=0.05)  # Poisson, once the curve is out


def test_requests_at_one_instant_have_no_rate_and_few_are_taken_to_stay() -> None:
    assert fitted_pace([5, 5, 5], 9).keys == {"rate": "inf"}
    assert fitted_pace([0, 10**9], 9).keys["rate"] == 1.0
    assert "too short to tell" in fitted_pace([0, 10**9], 9).reason


@pytest.mark.parametrize("max_gaps", [10_000, 500])
@pytest.mark.parametrize("cv", [1.0, 2**0.5, 2.0])
def test_a_table_of_gaps_has_the_spread_that_it_is_to_have(max_gaps: int, cv: float) -> None:
    gaps = np.random.default_rng(0).gamma(0.5, 3.0, 10_000)
    table = gap_table(gaps, cv**2, max_gaps)
    assert len(table) == max_gaps
    assert table.std() / table.mean() == pytest.approx(cv, rel=1e-4)
    assert (np.diff(table) >= 0).all()


def test_gaps_that_have_their_spread_stay_as_they_are() -> None:
    gaps = np.array([0.0, 0.0, 1.0, 2.0, 7.0])
    assert gap_table(gaps, float(gaps.var() / gaps.mean() ** 2), 5).tolist() == [0, 0, 500_000, 1_000_000, 3_500_000]
    even = gap_table(np.full(9, 0.5), 0.0, 9)
    assert even.tolist() == [10**6] * 9


def test_a_gap_far_larger_than_the_mean_still_fits_the_table() -> None:
    gaps = np.array([1e-6] * 99_999 + [1e6])
    table = gap_table(gaps, float(gaps.var() / gaps.mean() ** 2), 10**6)
    assert table[-1] == MAX_GAP
