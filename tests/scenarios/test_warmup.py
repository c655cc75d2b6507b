"""`run.warmup_s: auto`: found by a run of its own, then cut as if it had been given."""

from __future__ import annotations

from pathlib import Path

import pytest

import llmsim
from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.loading import load_scenario
from llmsim.tests.support.command_line import contents
from llmsim.tests.support.scenario_files import BUSY, write_scenario

COLD = {"workload.requests": 1500, "workload.rate": 60, "workload.repository_tokens": 4000, "engine": {}}
"""Enough memory for all contexts: the cache is cold at first and warm for good."""


def test_auto_cuts_the_cold_start_and_is_the_same_as_what_it_found(tmp_path: Path) -> None:
    path = write_scenario(tmp_path, BUSY)
    auto = llmsim.run(path, {**COLD, "run.warmup_s": "auto"}, output=tmp_path / "auto")
    found_s = auto.scenario["run"]["warmup_s"]
    whole = llmsim.run(path, COLD)
    assert 0 < found_s < whole.requests["sent_s"].max() / 2
    assert auto.summary["num_warmup_requests"] == (whole.requests["sent_s"] < found_s).sum() > 0
    assert auto.summary["ttft_s"]["p99"] < whole.summary["ttft_s"]["p99"]
    given = llmsim.run(path, {**COLD, "run.warmup_s": found_s}, output=tmp_path / "given")
    assert contents(given.folder) == contents(auto.folder)
    frame = llmsim.sweep(path, {"run.warmup_s": ["auto"]}, overrides=COLD, jobs=1)
    assert frame["ttft_s.p99"].tolist() == [auto.summary["ttft_s"]["p99"]]


def test_a_run_too_short_to_tell_is_kept_whole_and_says_so(tmp_path: Path) -> None:
    path = write_scenario(tmp_path, BUSY)
    with pytest.warns(UserWarning, match="too short to find its warm-up"):
        short = llmsim.run(path, {"workload.requests": 50, "run.warmup_s": "auto"})
    assert short.summary["num_warmup_requests"] == 0


@pytest.mark.parametrize(
    ("value", "message"),
    [("soon", "'soon' is unknown; choose auto"), (-1.0, "must be at least 0"), (None, "must be a number, not null")],
)
def test_a_wrong_warm_up_is_one_line(tmp_path: Path, value: object, message: str) -> None:
    with pytest.raises(ScenarioError, match=r"s\.yaml: run\.warmup_s: ") as raised:
        load_scenario(write_scenario(tmp_path), {"run.warmup_s": value})
    assert message in str(raised.value)
