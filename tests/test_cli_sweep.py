"""`llmsim sweep`: one table out of many runs; what is finished is kept."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pandas as pd
import pytest

from llmsim.tests.support.command_line import contents, finish, llmsim, start
from llmsim.tests.support.scenario_files import BUSY, write_scenario
from llmsim.tests.test_interrupt import signals_as_in_a_terminal

Capture = pytest.CaptureFixture[str]
CHUNKS = ("--vary", "policies.chunk_size.tokens=64,192", "--set", "workload.requests=30")


def test_json_holds_the_rows_of_the_table(tmp_path: Path, capsys: Capture) -> None:
    arguments = ("sweep", write_scenario(tmp_path, BUSY), *CHUNKS, "--seeds", 2, "-o", tmp_path / "s", "--json")
    done = llmsim(capsys, *arguments, "--jobs", 1)
    assert done.code == 0
    assert done.err.splitlines()[0].strip() == "busy on vllm@0.33: means of 2 seeds"
    assert done.err.endswith(f"4 rows in {tmp_path}/s/sweep.parquet\n")
    assert all(len(line.rstrip()) <= 80 for line in done.err.splitlines() if str(tmp_path) not in line)
    answer = done.json()
    assert (answer["path"], answer["num_known"]) == (str(tmp_path / "s" / "sweep.parquet"), 0)
    frame = pd.read_parquet(answer["path"])
    assert [row["policies.chunk_size.tokens"] for row in answer["rows"]] == [64, 64, 192, 192]
    assert [row["ttft_s.p99"] for row in answer["rows"]] == frame["ttft_s.p99"].tolist()
    assert answer["rows"][0]["intervals_95.ttft_s.p99.low"] is None  # 30 requests are too few
    again = llmsim(capsys, *arguments, "--jobs", 1)
    assert again.err.startswith("4 of 4 runs are known from before\n")
    assert again.json() == {**answer, "num_known": 4}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--vary", "workload.rate"], "--vary workload.rate: write --vary KEY=a,b,c, as in workload.rate=4,8,16"),
        (["--seeds", "0"], "Invalid value for '--seeds': Input should be greater than or equal to 1"),
        (["--jobs", "0"], "Invalid value for '--jobs': Input should be greater than or equal to 1"),
        (
            ["--vary", "policies.scheduling.name=fcfs,fcf"],
            "policies.scheduling.name: 'fcf' is unknown; choose dfs_weight, ",
        ),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, capsys: Capture, options: list[str], message: str) -> None:
    done = llmsim(capsys, "sweep", write_scenario(tmp_path, BUSY), "-o", tmp_path / "s", *options)
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    assert message in done.err
    assert os.listdir(tmp_path) == ["s.yaml"]


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_keeps_what_is_finished_and_the_same_command_goes_on(tmp_path: Path, capsys: Capture, jobs: int) -> None:
    path = write_scenario(tmp_path, BUSY)
    arguments = ("sweep", path, "--seeds", 40, "-o", tmp_path / "s", "--jobs", jobs, "--set", "workload.requests=150")
    with signals_as_in_a_terminal():
        process = start(*arguments, cwd=tmp_path)
    try:
        wait_for_points(process, tmp_path / "s" / "points")
        process.send_signal(signal.SIGINT)
        done = finish(process)
    finally:
        process.kill()
    num_kept = len(list((tmp_path / "s" / "points").glob("[!.]*.json")))
    assert 2 <= num_kept < 40
    assert (done.code, done.out) == (130, "")
    assert done.err.startswith("interrupted; ")
    assert len(done.err.splitlines()) == 1
    again = llmsim(capsys, *arguments, "--json")
    assert again.json()["num_known"] >= 2
    assert len(contents(tmp_path / "s" / "points")) >= 40


def wait_for_points(process: subprocess.Popen[str], folder: Path) -> None:
    """Until two points are done."""
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        if len(list(folder.glob("[!.]*.json"))) >= 2:
            return
        time.sleep(0.02)
    pytest.fail(f"the sweep finished nothing, or everything: {process.poll()}")
