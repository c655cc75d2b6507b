"""Arrivals by a file of gaps: each gap as often as any other, at whatever rate, and wrong files in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.loading import scenario_from
from llmsim.scenarios.workloads.building import build_workload

GAPS = [0, 0, 1, 7, 42]


def times_ns(folder: Path, text: str, num: int, seed: int = 0, **pacing: Any) -> np.ndarray[Any, Any]:
    (folder / "gaps.csv").write_text(text)
    workload = {"type": "independent", "requests": num, "arrivals": "empirical", "gaps": {"path": "gaps.csv"}} | pacing
    raw = {"name": "s", "model": "tiny", "hardware": {"gpu": "h100-sxm"}, "run": {"seed": seed}, "workload": workload}
    scenario = scenario_from(raw, folder / "s.yaml")
    return np.array([arrival.time_ns for arrival in build_workload(scenario, print).arrivals()])


def lines(numbers: list[int]) -> str:
    return "\n".join(map(str, numbers))


def test_each_gap_comes_once_before_any_comes_again(tmp_path: Path) -> None:
    found = np.diff(times_ns(tmp_path, lines(GAPS), 51, rate=0.1)) / 1e9
    for round_of_gaps in found.reshape(10, 5):
        assert sorted(round_of_gaps) == GAPS  # their mean is 10 s
    assert len({tuple(one) for one in found.reshape(10, 5)}) > 1


def test_the_rate_sets_the_mean_and_another_seed_the_order(tmp_path: Path) -> None:
    slow, fast = (times_ns(tmp_path, lines(GAPS), 51, rate=rate) for rate in (0.1, 10.0))
    assert slow[-1] == 500 * 10**9
    assert (slow == 100 * fast).all()
    other = times_ns(tmp_path, lines(GAPS), 51, seed=1, rate=0.1)
    assert other[-1] == slow[-1]
    assert (other != slow).any()


def test_gaps_can_be_a_column_and_follow_a_rate_that_changes(tmp_path: Path) -> None:
    ramp = {"ramp": {"from": 0.1, "to": 0.2, "over_s": 1000.0}}
    column = {"path": "gaps.csv", "column": "gap"}
    found = times_ns(tmp_path, "gap,x\n" + "\n".join(f"{gap},1" for gap in GAPS), 151, rate=ramp, gaps=column)
    assert found[-1] == pytest.approx(1000e9, rel=1e-9)  # 0.15 requests a second for 1,000 s


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0\n0\n", "all gaps are 0: where all come at once, rate is inf"),
        ("1\n-1\n", "line 2: '-1' is not a whole number from 0 to 1,000,000,000"),
        ("0.5\n", "line 1: '0.5' is not a whole number from 0"),
        ("", "the trace is empty"),
    ],
)
def test_a_wrong_file_of_gaps_is_one_line_before_anything_runs(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        times_ns(tmp_path, text, 5)
    assert str(caught.value).startswith(f"{tmp_path}/gaps.csv: {message}")
