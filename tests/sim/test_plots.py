"""The picture of a run is drawn from its folder, the same bytes each time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from llmsim.sim.metrics import summarize, summary_json
from llmsim.sim.plots import ResultFrames, plot_result, title
from llmsim.sim.recorder import Recorder
from llmsim.sim.timeline import NUM_BINS, Timeline
from llmsim.tests.support.synthetic import S, facts, record_busy_run, record_queue


def test_picture_is_the_same_each_time(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    record_busy_run(recorder)
    (tmp_path / "summary.json").write_text(summary_json(summarize(recorder, facts(warmup_ns=5 * S))))
    plot_result(tmp_path, tmp_path / "a.png")
    plot_result(ResultFrames.read(tmp_path), tmp_path / "b.png")
    picture = (tmp_path / "a.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert picture == (tmp_path / "b.png").read_bytes()


def test_a_long_title_is_broken_into_lines(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    record_busy_run(recorder)
    summary = summarize(recorder, facts())
    own = {"scheduling": {"name": "./a_policy_of_my_own.py:ShortestPromptFirst", "patience_s": 5, "most": 128}}
    lines = title(summary | {"departures": own | {"chunk_size": {"name": "fixed", "tokens": 2048}}}).splitlines()
    assert len(lines) > 2
    assert max(map(len, lines)) <= 95


@pytest.mark.parametrize("num_requests", [0, 1, 50])
def test_runs_with_little_to_show_are_drawn_too(tmp_path: Path, num_requests: int) -> None:
    recorder = Recorder(tmp_path)
    record_queue(recorder, num_requests, load=0.5)
    (tmp_path / "summary.json").write_text(summary_json(summarize(recorder, facts())))
    plot_result(tmp_path, tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 10_000


def test_timeline_keeps_integrals_and_peaks() -> None:
    rng = np.random.default_rng(0)
    starts = np.sort(rng.uniform(0, 100, 5000))
    steps = pd.DataFrame(
        {"start_s": starts, "duration_s": 0.01, "host_s": 0.0, "num_running": rng.integers(1, 99, 5000)}
    )
    timeline = Timeline(steps, until_s=120.0)
    running = timeline.values("num_running")
    mean, largest = timeline.mean(running), timeline.largest(running)
    held_s = np.minimum(0.01, np.append(np.diff(starts), np.inf))
    assert mean.sum() * 120 / NUM_BINS == pytest.approx(float(running @ held_s))
    assert largest.max() == 98
    assert (largest >= mean).all()
    assert timeline.sums(np.ones(5000)).sum() == 5000
    assert mean[-1] == 0


def test_host_time_between_steps_is_no_idle_time() -> None:
    steps = pd.DataFrame({"start_s": [1.0, 3.0, 9.0], "duration_s": 1.0, "host_s": 1.0, "num_running": 4})
    timeline = Timeline(steps, until_s=10.0)
    running = timeline.mean(timeline.values("num_running"))
    assert running.sum() * 10 / NUM_BINS == pytest.approx(4 * 6)
    assert running[: NUM_BINS // 3].min() == pytest.approx(4)
