"""A summary as one row."""

from __future__ import annotations

from llmsim.scenarios.studies.flattening import flat


def test_figures_are_named_by_their_path() -> None:
    assert flat({"seed": 3, "ttft_s": {"p50": 0.1, "p99": None}, "memory": {"a": {"b": 1}}, "on": [4, {"x": 5}]}) == {
        "seed": 3,
        "ttft_s.p50": 0.1,
        "ttft_s.p99": None,
        "memory.a.b": 1,
        "on.0": 4,
        "on.1.x": 5,
    }


def test_an_interval_is_two_columns_whether_there_is_one_or_not() -> None:
    assert flat({"intervals_95": {"ttft_s": {"p50": [1.0, 2.0], "p99": None}}}) == {
        "intervals_95.ttft_s.p50.low": 1.0,
        "intervals_95.ttft_s.p50.high": 2.0,
        "intervals_95.ttft_s.p99.low": None,
        "intervals_95.ttft_s.p99.high": None,
    }
