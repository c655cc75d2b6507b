"""Errors, noise, and what they mean."""

from __future__ import annotations

import pytest

from llmsim.calibrate.loop.verdicts import METRICS, STATISTICS, Figures, Verdict, bound_of, compared, counts, noise_of


def figures(seconds: float | None) -> Figures:
    return {metric: dict.fromkeys(STATISTICS, seconds) for metric in METRICS}


def test_an_error_is_of_the_mean_of_the_repeats() -> None:
    row = compared([figures(1.0), figures(1.02)], figures(1.0605))["tpot_s"]["mean"]
    assert row.measured == pytest.approx(1.01)
    assert row.error == pytest.approx(0.05)
    assert row.noise == pytest.approx(0.02 / 1.01)


@pytest.mark.parametrize(
    ("repeats", "simulated", "tpot", "ttft"),
    [
        ((1.0, 1.01), 1.03, Verdict.WITHIN, Verdict.WITHIN),
        ((1.0, 1.01), 1.09, Verdict.BEYOND, Verdict.WITHIN),
        ((1.0, 1.01), 0.91, Verdict.BEYOND, Verdict.WITHIN),
        ((1.0, 1.01), 1.2, Verdict.BEYOND, Verdict.BEYOND),
        ((1.0, 1.06), 1.03, Verdict.INCONCLUSIVE, Verdict.WITHIN),
        ((1.0, 1.06), 2.0, Verdict.INCONCLUSIVE, Verdict.BEYOND),
        ((1.0, 1.3), 1.15, Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE),
        ((1.0,), 1.0, Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE),
    ],
)
def test_noise_beyond_the_bound_concludes_nothing(
    repeats: tuple[float, ...], simulated: float, tpot: Verdict, ttft: Verdict
) -> None:
    table = compared([figures(seconds) for seconds in repeats], figures(simulated))
    assert table["tpot_s"]["mean"].verdict == tpot
    assert table["ttft_s"]["mean"].verdict == ttft
    assert table["itl_s"]["p99"].verdict == ttft  # which has the wider bound, too


def test_what_was_not_measured_concludes_nothing() -> None:
    table = compared([figures(None), figures(None)], figures(1.0))
    assert counts(table) == {"within": 0, "beyond": 0, "inconclusive": 16}
    assert compared([figures(1.0), figures(1.0)], figures(None))["e2e_s"]["p50"].verdict == Verdict.INCONCLUSIVE


def test_bounds_are_as_the_project_promises() -> None:
    assert {statistic: bound_of("itl_s", statistic) for statistic in STATISTICS} == {
        "mean": 0.05,
        "p50": 0.05,
        "p95": 0.05,
        "p99": 0.10,
    }
    assert bound_of("ttft_s", "mean") == 0.10


def test_a_single_value_has_no_noise() -> None:
    assert noise_of([3.0]) is None
    assert noise_of([1.0, 3.0]) == pytest.approx(1.0)
