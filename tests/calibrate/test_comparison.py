from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from llmsim.calibrate.comparison import RunTimes, gap_errors, latency_errors, never_queued
from llmsim.calibrate.comparison_series import SeriesPair, compare_series
from llmsim.calibrate.runs.measured_run import MeasuredRequest, MeasuredRun, MeasuredSeries
from llmsim.policies.core.records import StepKind, StepRecord
from llmsim.sim.gaps import Gaps

ALL = np.array([True, True])


def times(first_s: list[float], last_s: list[float]) -> RunTimes:
    arrival, scheduled, tokens = np.array([0.0, 1.0]), np.array([0.1, np.nan]), np.array([5.0, 1.0])
    return RunTimes(arrival, scheduled, np.array(first_s), np.array(last_s), tokens)


def test_an_error_is_simulated_over_measured_less_one() -> None:
    errors = latency_errors(times([1.0, 2.0], [3.0, 2.0]), times([1.1, 2.3], [3.5, 2.3]), ALL)
    assert errors["ttft_s"]["mean"] == pytest.approx({"measured": 1.0, "simulated": 1.2, "error": 0.2})
    assert errors["e2e_s"]["p50"] == pytest.approx({"measured": 2.0, "simulated": 2.4, "error": 0.2})


def test_tpot_counts_requests_of_more_than_one_token_and_a_moment_must_be_known() -> None:
    errors = latency_errors(times([1.0, 2.0], [3.0, 2.0]), times([1.0, 2.0], [3.4, 2.0]), ALL)
    assert errors["tpot_s"]["mean"] == pytest.approx({"measured": 0.5, "simulated": 0.6, "error": 0.2})
    assert errors["scheduled_to_first_token_s"]["p99"]["measured"] == pytest.approx(0.9)
    assert "queue_s" in errors
    unknown = latency_errors(times([1.0, 2.0], [3.0, 2.0]), times([1.0, 2.0], [3.4, 2.0]), np.array([False, True]))
    assert set(unknown) == {"ttft_s", "e2e_s"}


def request(queued_s: float | None, itls_s: tuple[float, ...] | None = None) -> MeasuredRequest:
    return MeasuredRequest("a", 1, 3, 0.0, queued_s=queued_s, scheduled_s=0.5, itls_s=itls_s)


def test_never_queued_is_what_was_scheduled_as_soon_as_it_was_known() -> None:
    run = MeasuredRun(Path(), (request(0.495), request(0.4), request(None)))
    assert never_queued(run, 0.01).tolist() == [True, False, False]


def test_gaps_are_pooled_over_requests() -> None:
    run = MeasuredRun(Path(), (request(0.0, (0.1, 0.3)), request(0.0, (0.2,))))
    simulated = Gaps(np.array([10**8, 4 * 10**8]), np.array([2, 1]))
    error = gap_errors(run, simulated, ALL)["itl_s"]["p50"]
    assert error == pytest.approx({"measured": 0.2, "simulated": 0.1, "error": -0.5})
    assert gap_errors(MeasuredRun(Path(), (request(0.0), request(0.0))), simulated, ALL) == {}


def step(start_s: float, running: int, free: int) -> StepRecord:
    fields = {**dict.fromkeys(StepRecord._fields, 0), "kind": StepKind.DECODE, "start_ns": round(start_s * 1e9)}
    return StepRecord(**{**fields, "num_running": running, "num_waiting": 2, "free_blocks": free})


def test_the_simulated_state_is_that_of_the_last_step_begun() -> None:
    measured = MeasuredSeries(np.array([0.5, 1.0, 2.5]), np.array([0.0, 3.0, 5.0]), np.zeros(3), None)
    compared = compare_series(measured, [step(1.0, 3, 80), step(2.0, 4, 60)], 100)
    assert set(compared.pairs) == {"running", "waiting"}
    assert compared.pairs["running"].simulated.tolist() == [0.0, 3.0, 4.0]
    assert compared.pairs["running"].mean_deviation() == pytest.approx(1 / 3)
    with_kv = measured.__class__(measured.time_s, measured.running, measured.waiting, np.array([0.0, 0.2, 0.5]))
    assert compare_series(with_kv, [step(1.0, 3, 80), step(2.0, 4, 60)], 100).pairs["kv_usage"].simulated.tolist() == [
        pytest.approx(0.0),
        pytest.approx(0.2),
        pytest.approx(0.4),
    ]


def test_what_never_changes_correlates_with_nothing() -> None:
    assert SeriesPair(np.ones(3), np.arange(3.0)).correlation() is None
    assert SeriesPair(np.arange(3.0), 2 * np.arange(3.0)).correlation() == pytest.approx(1.0)
