"""Means over replications: the runs are those of their seeds, the intervals Student's."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest

from llmsim.scenarios.studies.replications import over_replications
from llmsim.scenarios.studies.sweep import Sweep
from llmsim.tests.support.command_line import contents, llmsim, strict_json
from llmsim.tests.support.scenario_files import BUSY, write_scenario

Capture = pytest.CaptureFixture[str]
FEW = ("--set", "workload.requests=40")


def test_each_run_is_that_of_its_seed_and_the_summary_says_their_means(tmp_path: Path, capsys: Capture) -> None:
    path = write_scenario(tmp_path, BUSY)
    seed = ("--set", "run.seed=5")
    done = llmsim(capsys, "run", path, "-o", tmp_path / "out", *FEW, *seed, "--replications", 3, "--jobs", 2, "--json")
    assert done.code == 0
    whole = done.json()
    assert whole == strict_json((tmp_path / "out" / "summary.json").read_text())
    assert whole["seeds"] == [5, 6, 7]
    assert sorted(os.listdir(tmp_path / "out")) == ["seed-5", "seed-6", "seed-7", "summary.json"]
    alone = []
    for number in (5, 6, 7):
        alone.append(
            llmsim(capsys, "run", path, "-o", tmp_path / f"{number}", *FEW, "--set", f"run.seed={number}", "--json")
        )
        assert contents(tmp_path / "out" / f"seed-{number}") == contents(tmp_path / f"{number}")
    p99s = [outcome.json()["ttft_s"]["p99"] for outcome in alone]
    figure = whole["figures"]["ttft_s.p99"]
    assert figure["mean"] == pytest.approx(np.mean(p99s))
    half_width = 4.30265 * np.std(p99s, ddof=1) / math.sqrt(3)
    assert figure["interval_95"] == pytest.approx([np.mean(p99s) - half_width, np.mean(p99s) + half_width], rel=1e-4)
    assert "seed" not in whole["figures"]
    assert "means of 3 runs" in done.err
    assert all(len(line.rstrip()) <= 80 for line in done.err.splitlines() if str(tmp_path) not in line)


def test_force_replaces_replications_and_a_mistake_leaves_nothing(tmp_path: Path, capsys: Capture) -> None:
    arguments = ("run", write_scenario(tmp_path, BUSY), "-o", tmp_path / "out", *FEW, "--replications", 2, "--jobs", 1)
    assert llmsim(capsys, *arguments).code == 0
    before = contents(tmp_path)
    refused = llmsim(capsys, *arguments)
    assert (refused.code, refused.out) == (2, "")
    assert "exists already" in refused.err
    assert llmsim(capsys, *arguments, "--force").code == 0
    assert contents(tmp_path) == before


def test_a_trace_is_the_same_whatever_the_seed_and_that_is_said(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "trace").write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,374,44\n")
    path = write_scenario(tmp_path, "{name: t, model: tiny, hardware: {gpu: h100-sxm}, workload: {type: trace, "
                          "format: azure, path: trace}}")  # fmt: skip
    done = llmsim(capsys, "run", path, "-o", tmp_path / "out", "--replications", 2, "--jobs", 1)
    assert done.code == 0
    assert "warning: every replication gave the same figures" in done.err


def test_a_figure_that_one_run_lacks_has_no_mean(tmp_path: Path) -> None:
    raw = {"name": "s", "model": "tiny", "hardware": {"gpu": "h100-sxm"}, "workload": {"type": "independent"}}
    study = Sweep(raw, None, {"workload.requests": [10]}, num_seeds=2, folder=tmp_path / "s", warn=print)
    study.run(1)
    summaries = [strict_json(path.read_text()) for path in (tmp_path / "s" / "points").iterdir()]
    assert "ttft_s.p99" in over_replications(summaries)["figures"]
    summaries[1]["ttft_s"]["p99"] = None
    assert "ttft_s.p99" not in over_replications(summaries)["figures"]
