"""Policies that are ranked as measured, over the differences that are more than noise."""

from __future__ import annotations

import pytest

from llmsim.calibrate.loop.ranking import RANKED, ranked
from llmsim.calibrate.loop.verdicts import METRICS, STATISTICS, Figures


def figures(seconds: float) -> Figures:
    return {metric: dict.fromkeys(STATISTICS, seconds) for metric in METRICS}


RUNS = {
    "a": [figures(1.0), figures(1.02)],
    "b": [figures(1.02), figures(1.03)],
    "c": [figures(2.0), figures(2.01)],
}


def test_only_differences_beyond_the_noise_of_repeats_count() -> None:
    one = ranked(RUNS, {"a": figures(1.0), "b": figures(0.9), "c": figures(3.0)})[0]
    assert one.noise == pytest.approx(0.02 / 1.01)
    assert [(pair.first, pair.second) for pair in one.pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert [(pair.first, pair.second) for pair in one.counted] == [("a", "c"), ("b", "c")]
    assert all(pair.agrees for pair in one.counted)


def test_a_difference_the_other_way_does_not_agree() -> None:
    found = ranked(RUNS, {"a": figures(1.0), "b": figures(1.0), "c": figures(0.99)})
    assert len(found) == len(RANKED)
    assert [pair.agrees for pair in found[0].counted] == [False, False]
    assert found[0].counted[0].measured == pytest.approx((2.005 - 1.01) / 1.01)
    assert found[0].counted[0].simulated == pytest.approx(-0.01 / 1.01)


def test_a_policy_without_a_statistic_is_in_none_of_its_pairs() -> None:
    nobody = figures(1.0) | {"ttft_s": dict.fromkeys(STATISTICS)}
    runs = RUNS | {"c": [figures(2.0), nobody]}
    for ours in (figures(3.0), nobody):
        ttft, *_, e2e = ranked(runs, {"a": figures(1.0), "b": figures(0.9), "c": ours})
        assert [(pair.first, pair.second) for pair in ttft.pairs] == [("a", "b")]
        assert (ttft.measured["a"], ttft.measured["c"]) == (pytest.approx(1.01), None)
        assert len(e2e.pairs) == 3
    assert ranked({name: [nobody, nobody] for name in RUNS}, dict.fromkeys(RUNS, nobody))[0].noise == 0


def test_a_simulator_that_sees_no_difference_does_not_agree() -> None:
    found = ranked(RUNS, {name: figures(1.0) for name in RUNS})
    assert not any(pair.agrees for one in found for pair in one.pairs)
