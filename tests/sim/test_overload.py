"""The overload flag tells want of capacity from the noise of a stable queue."""

from __future__ import annotations

import pytest

from llmsim.sim.metrics import Summary, summarize
from llmsim.sim.overload import QueueTrend, is_overloaded
from llmsim.sim.recorder import Recorder
from llmsim.tests.support.synthetic import S, facts, record_queue, request, step


def queue_summary(num_requests: int, load: float, seed: int) -> Summary:
    recorder = Recorder()
    record_queue(recorder, num_requests, load, seed)
    return summarize(recorder, facts())


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("load", [0.5, 0.8, 0.9])
def test_a_stable_queue_is_not_overloaded(load: float, seed: int) -> None:
    assert queue_summary(10_000, load, seed)["overloaded"] is False


@pytest.mark.parametrize("seed", range(5))
def test_a_queue_at_load_1_1_is_overloaded_and_grows_by_its_excess(seed: int) -> None:
    summary = queue_summary(10_000, 1.1, seed)
    assert summary["overloaded"] is True
    assert summary["queue_slope_per_s"] == pytest.approx(0.1, abs=0.03)


def test_far_too_much_load_is_flagged_though_the_drain_is_most_of_the_run() -> None:
    summary = queue_summary(2_000, 5.0, 0)
    assert summary["overloaded"] is True
    assert summary["drain_s"] > summary["duration_s"] / 2


def test_a_batch_sent_at_once_is_not_called_overloaded() -> None:
    recorder = Recorder()
    for i in range(500):
        recorder.on_step(step(i, i * S, S, num_waiting=499 - i))
        recorder.on_request(request(f"r{i}", 0, last_token_ns=(i + 3) * S))
    recorder.close()
    summary = summarize(recorder, facts())
    assert summary["overloaded"] is False
    assert summary["queue_slope_per_s"] is None


def test_a_burst_near_the_end_is_not_overload() -> None:
    grown = QueueTrend(slope_per_s=1.0, window_s=1000.0, first_quarter_mean=2.0, last_quarter_min=400.0)
    assert is_overloaded(grown, num_arrivals=5000)
    assert not is_overloaded(grown._replace(last_quarter_min=0.0), num_arrivals=5000)
    assert not is_overloaded(grown, num_arrivals=60_000)
    assert not is_overloaded(None, num_arrivals=5000)
