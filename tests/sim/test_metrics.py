"""The summary agrees with its definitions on records small enough to count by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from llmsim.policies.core.records import RequestRecord, Status
from llmsim.sim.latencies import Slo
from llmsim.sim.metrics import MEMORY_KEYS, Summary, headline, summarize, summary_json
from llmsim.sim.recorder import Recorder
from llmsim.tests.support.synthetic import MS, S, facts, record_busy_run, record_queue, refused, request, step

KEYS = (
    "ttft_s, tpot_s, itl_s, e2e_s, queue_s, itl_request_mean_s, requests_per_s, output_tokens_per_s, "
    "total_tokens_per_s, goodput_rps, prefix_hit_rate, cached_tokens, num_preemptions, num_steps, "
    "duration_s, kv_usage, running, waiting, utilization, num_requests, memory, overloaded, scenario, "
    "seed, version"
)


def summary_of(requests: list[RequestRecord], **changes: Any) -> Summary:
    recorder = Recorder()
    for record in requests:
        recorder.on_request(record)
    recorder.close()
    return summarize(recorder, facts(**changes))


def nulls(summary: Summary) -> set[str]:
    """Names of the figures that are null, or an object of nothing but nulls."""
    return {
        key
        for key, value in summary.items()
        if value is None or (isinstance(value, dict) and value and all(part is None for part in value.values()))
    }


def test_summary_has_every_key_and_is_strict_json() -> None:
    recorder = Recorder()
    record_busy_run(recorder)
    summary = summarize(recorder, facts(slo=Slo(ttft_s=2.5)))
    assert set(KEYS.split(", ")) <= set(summary)
    assert json.loads(summary_json(summary)) == summary
    assert set(summary["ttft_s"]) == set(summary["itl_s"]) == {"mean", "p50", "p90", "p95", "p99", "max"}
    assert set(summary["num_requests"]) == {"finished", "refused", "aborted", "unfinished"}
    assert set(summary["utilization"]) == {"busy", "flops", "bandwidth"}
    assert set(summary["kv_usage"]) == set(summary["running"]) == set(summary["waiting"]) == {"mean", "max"}
    assert set(summary["memory"]) == set(MEMORY_KEYS)
    assert not nulls(summary)


def test_summary_is_the_same_from_memory_and_from_the_file(tmp_path: Path) -> None:
    in_memory, on_disk = Recorder(), Recorder(tmp_path)
    record_busy_run(in_memory, num_steps=40_000)
    record_busy_run(on_disk, num_steps=40_000)
    assert summarize(in_memory, facts()) == summarize(on_disk, facts())


def test_latencies_follow_their_definitions() -> None:
    summary = summary_of([request("a", 0), request("b", 10 * S, output_tokens=21)])
    assert summary["queue_s"]["mean"] == 1.0
    assert summary["ttft_s"]["max"] == 2.0
    assert summary["e2e_s"]["p50"] == 3.0
    assert summary["tpot_s"]["mean"] == pytest.approx((1 / 10 + 1 / 20) / 2)
    assert summary["itl_request_mean_s"] == summary["tpot_s"]


def test_rates_divide_finished_requests_by_the_time_to_the_last_token() -> None:
    requests = [request("a", 0), request("b", 5 * S), refused("c", 6 * S)]
    summary = summary_of(requests)
    assert summary["duration_s"] == 8.0
    assert summary["drain_s"] == 2.0
    assert summary["requests_per_s"] == 2 / 8
    assert summary["output_tokens_per_s"] == 22 / 8
    assert summary["total_tokens_per_s"] == 222 / 8
    assert summary["mean_concurrency"] == 6 / 8
    assert summary["num_requests"] == {"finished": 2, "refused": 1, "aborted": 0, "unfinished": 0}


def test_windowed_rates_leave_the_drain_out_and_split_a_request_at_the_edge() -> None:
    windowed = summary_of([request("a", 0), request("b", int(3.5 * S))])["windowed"]
    assert (windowed["end_s"], windowed["requests_per_s"]) == (3.5, 1 / 3.5)
    assert windowed["output_tokens_per_s"] == pytest.approx(11 / 3.5)
    # The first request's tokens came from 2 s to 3 s: the first one and 8 of the other 10 by 2.8 s.
    windowed = summary_of([request("a", 0), request("b", int(2.5 * S)), refused("c", int(2.8 * S))])["windowed"]
    assert windowed["end_s"] == 2.8
    assert windowed["requests_per_s"] == 0.0
    assert windowed["output_tokens_per_s"] == pytest.approx((1 + 10 * 0.8) / 2.8)


def test_where_all_is_sent_at_once_the_drain_is_the_run() -> None:
    windowed = summary_of([request("a", 0), request("b", S // 10)])["windowed"]
    assert (windowed["start_s"], windowed["end_s"]) == (0.0, 3.1)
    assert windowed["output_tokens_per_s"] == pytest.approx(22 / 3.1)


def test_what_ran_stands_in_the_headline() -> None:
    chunks = {"chunk_size": {"name": "fixed", "tokens": 512}}
    summary = summary_of([request("a", 0)], model="m", gpu="g", tensor_parallel=2, departures=chunks)
    assert headline(summary) == "made-up: m on 2 x g, vllm@0.33, chunk_size fixed (tokens 512)"


def test_warmup_is_cut_by_the_time_sent() -> None:
    requests = [
        request("a", 0, cached_tokens=90),
        request("b", 9 * S),
        request("c", 10 * S, cached_tokens=50),
    ]
    summary = summary_of(requests, warmup_ns=10 * S)
    assert summary["num_requests"]["finished"] == 1
    assert summary["num_warmup_requests"] == 2
    assert summary["duration_s"] == 3.0
    assert summary["requests_per_s"] == 1 / 3
    assert summary["cached_tokens"] == 50
    # Tokens of the warm-up's requests that came after it still count as served in the window.
    assert summary["windowed"]["requests_per_s"] == 2 / 3


def test_hit_rate_counts_the_first_admissions_only() -> None:
    requests = [
        request("a", 0, cached_tokens=60),
        refused("b", 0),
        request("c", S, status=Status.UNFINISHED, last_token_ns=None, cached_tokens=40),
    ]
    summary = summary_of(requests)
    assert (summary["prefix_hit_rate"], summary["cached_tokens"]) == (0.5, 100)


@pytest.mark.parametrize(
    ("slo", "good"),
    [
        (Slo(ttft_s=2.0), 3),
        (Slo(ttft_s=1.9), 0),
        (Slo(tpot_s=0.1), 3),
        (Slo(tpot_s=0.05), 1),  # a single token has no time between tokens
        (Slo(itl_s=0.1), 2),  # one request stalled once
        (Slo(e2e_s=2.0), 1),
        (Slo(ttft_s=2.0, itl_s=0.1, e2e_s=2.5), 1),
    ],
)
def test_goodput_counts_requests_that_keep_every_bound(slo: Slo, good: int) -> None:
    requests = [
        request("plain", 0),
        request("stalled", S, max_gap_ns=900 * MS),
        request("short", 2 * S, output_tokens=1, last_token_ns=4 * S, max_gap_ns=None),
        request("gone", 2 * S, status=Status.ABORTED),
        refused("never", 2 * S),
    ]
    summary = summary_of(requests, slo=slo)
    assert summary["goodput_rps"] == good / summary["duration_s"]


def test_without_samples_figures_are_null_never_nan() -> None:
    latencies = {"ttft_s", "tpot_s", "itl_s", "itl_request_mean_s", "e2e_s", "queue_s"}
    over_time = {"kv_usage", "running", "waiting", "utilization", "queue_slope_per_s", "mean_concurrency"}
    rates = {"requests_per_s", "output_tokens_per_s", "total_tokens_per_s", "goodput_rps", "prefix_hit_rate"}
    empty = summary_of([])
    assert nulls(empty) == latencies | over_time | rates
    assert "NaN" not in summary_json(empty)
    only_refused = summary_of([refused("a", 0), refused("b", S)], slo=Slo(ttft_s=1.0))
    assert only_refused["goodput_rps"] == 0.0
    assert nulls(only_refused) >= latencies | {"prefix_hit_rate"}
    one_token = summary_of([request("a", 0, output_tokens=1, last_token_ns=2 * S, max_gap_ns=None)])
    assert nulls(one_token) == {"tpot_s", "itl_s", "itl_request_mean_s", "goodput_rps", "queue_slope_per_s"}


def test_levels_cover_the_time_in_which_load_was_on() -> None:
    recorder = Recorder()
    recorder.on_step(step(0, 0, 2 * S, num_running=4, num_waiting=2, free_blocks=500))
    recorder.on_step(step(1, 3 * S, S, num_running=1, free_blocks=900))
    recorder.on_step(step(2, 4 * S, 2 * S, num_running=9, free_blocks=0))
    recorder.on_request(request("a", 0))
    recorder.on_request(request("b", 4 * S, last_token_ns=6 * S))
    recorder.close()
    summary = summarize(recorder, facts())
    assert summary["num_steps"] == 3
    assert summary["running"] == {"mean": (4 * 2 + 1) / 4, "max": 4}
    assert summary["waiting"] == {"mean": 2 * 3 / 4, "max": 2}
    assert summary["kv_usage"] == {"mean": pytest.approx((0.5 * 3 + 0.1) / 4), "max": 0.5}
    assert summary["utilization"] == pytest.approx({"busy": 3 / 4, "flops": 0.3 / 4, "bandwidth": 1.5 / 4})


def test_waiting_times_of_a_recorded_queue_match_queueing_theory() -> None:
    recorder, load = Recorder(), 0.7
    record_queue(recorder, 50_000, load)
    summary = summarize(recorder, facts())
    assert summary["queue_s"]["mean"] == pytest.approx(load / (2 * (1 - load)), rel=0.05)
    assert summary["utilization"]["busy"] == pytest.approx(load, rel=0.01)
    # Counts are those after planning: who comes during a step is seen at its end, half a step late.
    waits_s = summary["queue_s"]["mean"] - load / 2
    assert summary["waiting"]["mean"] == pytest.approx(load * waits_s, rel=0.02)
    assert np.isclose(summary["output_tokens_per_s"], load, rtol=0.01)
