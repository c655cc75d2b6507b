"""The command that measures how often intervals hold the long-run value counts right."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from llmsim.tests.benchmarks.interval_coverage import SCENARIOS, coverage
from llmsim.tests.support.command_line import finish, start


def test_intervals_that_miss_are_counted_by_side() -> None:
    figure = "ttft_s.p99"
    lows, highs = [8.0, 11.0, 5.0, float("nan")], [12.0, 14.0, 9.0, float("nan")]
    short = pd.DataFrame({figure: [10.0, 12.0, 8.0, 10.0]})
    short[f"intervals_95.{figure}.low"], short[f"intervals_95.{figure}.high"] = lows, highs
    found = coverage(short, pd.DataFrame({figure: [9.0, 11.0]}), figure)
    assert found is not None
    assert (found["long_run"], found["short_run_mean"], found["bias"]) == (10.0, 10.0, 0.0)
    assert (found["num_intervals"], found["coverage"]) == (3, 0.25)  # a run without an interval holds nothing
    assert (found["all_below"], found["all_above"]) == (0.25, 0.25)
    assert found["mean_half_width"] == pytest.approx((4 + 3 + 4) / 6)
    assert found["width_ratio"] == pytest.approx(11 / 6 / (1.96 * short[figure].std()))
    assert coverage(pd.DataFrame({figure: [None, None]}), short, figure) is None


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_the_command_runs_and_its_exit_code_is_its_verdict(tmp_path: Path, name: str) -> None:
    few = ("--repeats", 3, "--requests", 1200, "--long-runs", 2, "--long-requests", 1300, "--jobs", 1, "--json")
    done = finish(start("--scenario", name, *few, cwd=tmp_path, module="llmsim.tests.benchmarks.interval_coverage"))
    found = done.json()["figures"]
    assert done.code == (found["ttft_s.p99"]["coverage"] < 0.92)
    assert found["ttft_s.p99"]["num_intervals"] == 3
    assert (found["itl_s.p99"] is None) == (name == "md1")
    assert "3 runs of 1,200 requests" in done.err
