from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from llmsim.calibrate.comparison import measured_times
from llmsim.calibrate.runs.errors import RunError
from llmsim.calibrate.runs.formats import read_run
from llmsim.tests.support.measured_runs import write_lines, write_recording
from llmsim.tests.support.shared import shared


def test_the_clocks_are_brought_together_by_the_least_wait(tmp_path: Path) -> None:
    run = read_run(write_recording(tmp_path / "run"))
    assert [request.arrival_s for request in run.requests] == [0.0, 0.5]
    assert [request.queued_s for request in run.requests] == pytest.approx([0.0, 0.6])
    assert [request.first_token_s for request in run.requests] == pytest.approx([0.3, 0.9])
    assert [request.intended_s for request in run.requests] == pytest.approx([0.1, 0.5])


def test_the_series_counts_from_the_first_arrival(tmp_path: Path) -> None:
    series = read_run(write_recording(tmp_path / "run")).series
    assert series is not None
    assert series.kv_usage is not None
    assert (series.time_s.tolist(), series.kv_usage.tolist()) == (pytest.approx([0.5]), [0.5])


def test_a_kv_use_that_is_always_zero_was_not_recorded(tmp_path: Path) -> None:
    folder = write_recording(tmp_path / "run")
    (folder / "vllm_timeseries.csv").write_text("t,running,waiting,kv_cache_pct\n1.0,2,1,0.0\n")
    series = read_run(folder).series
    assert series is not None
    assert series.kv_usage is None


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def complaint(folder: Path) -> str:
    with pytest.raises(RunError) as raised:
        read_run(folder)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_a_request_that_the_workload_has_and_the_run_lacks_is_named(tmp_path: Path) -> None:
    folder = write_recording(tmp_path / "run")
    write_lines(folder / "vllm_requests.jsonl", lines(folder / "vllm_requests.jsonl")[:1])
    says = complaint(folder)
    assert "workload.jsonl: line 2" in says
    assert "bench-1" in says


def test_a_request_that_the_workload_lacks_is_named(tmp_path: Path) -> None:
    folder = write_recording(tmp_path / "run")
    write_lines(folder / "workload.jsonl", lines(folder / "workload.jsonl")[:1])
    assert "vllm_requests.jsonl: line 2: request_id: bench-1 is no row of the workload" in complaint(folder)


def test_a_request_whose_length_is_another_in_the_workload_is_named(tmp_path: Path) -> None:
    folder = write_recording(tmp_path / "run")
    rows = lines(folder / "vllm_requests.jsonl")
    write_lines(folder / "vllm_requests.jsonl", [rows[0] | {"output_toks": 4}, rows[1]])
    assert "line 1: output_toks: 4 is 3 in workload.jsonl, line 1" in complaint(folder)


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("first_token_ts", 49.0, "first_token_s is"),
        ("queued_ts", None, "queued_ts: is missing"),
        ("queued_ts", "soon", 'queued_ts: must be a number of seconds, not "soon"'),
        ("input_toks", -1, "input_toks: must be a whole number of tokens, not -1"),
        ("arrival_time", 1.7e18, "arrival_time: must be a number of seconds"),
    ],
)
def test_what_cannot_be_is_told_by_row_and_field(tmp_path: Path, field: str, value: object, says: str) -> None:
    folder = write_recording(tmp_path / "run")
    rows = lines(folder / "vllm_requests.jsonl")
    write_lines(folder / "vllm_requests.jsonl", [rows[0] | {field: value}, rows[1]])
    assert f"line 1: {says}" in complaint(folder)


def test_the_recorded_runs_are_read_whole() -> None:
    run = read_run(shared("measured", "vllm0.19-rtx4090-llama3.1-8b"))
    ttft_s = measured_times(run).latencies()["ttft_s"]
    assert len(run.requests) == 300
    assert run.setup.engine["num_gpu_blocks_override"] == 2588
    assert run.setup.gpu == "NVIDIA GeForce RTX 4090"
    assert np.mean(ttft_s) == pytest.approx(65.4566, rel=1e-3)
    assert np.percentile(ttft_s, [50, 99]) == pytest.approx([60.1109, 137.3563], rel=1e-3)
