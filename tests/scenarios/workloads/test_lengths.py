"""Lengths, turns and times are drawn as their YAML asks, and files of numbers are read or refused in one line."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.loading import load_scenario
from llmsim.scenarios.schema_lengths import ExponentialTime, LogNormalSeconds, LogNormalTime, Uniform, UniformLength
from llmsim.scenarios.workloads.building import build_workload
from llmsim.scenarios.workloads.lengths import lengths, times_ns
from llmsim.scenarios.workloads.number_files import read_numbers
from llmsim.tests.support.scenario_files import write_scenario


def test_uniform_lengths_take_every_value_equally_often() -> None:
    length = UniformLength(uniform=Uniform(min=3, max=7))
    counts = Counter(islice(lengths(length, 0, "prompt_tokens"), 50_000))
    assert set(counts) == {3, 4, 5, 6, 7}
    assert all(count / 50_000 == pytest.approx(0.2, abs=0.011) for count in counts.values())  # 6 standard errors


def test_times_have_the_mean_and_spread_that_were_asked_for() -> None:
    for time, cv in (
        (ExponentialTime(exponential=8.0), 1.0),
        (LogNormalTime(lognormal=LogNormalSeconds(mean=8.0, cv=0.5)), 0.5),
    ):
        found = np.fromiter(islice(times_ns(time, 0, "think_s"), 100_000), dtype=np.int64) / 1e9
        assert found.mean() == pytest.approx(8.0, rel=6 * cv / 100_000**0.5)
        assert found.std() / found.mean() == pytest.approx(cv, rel=0.03)
    assert set(islice(times_ns(0.25, 0, "think_s"), 10)) == {250_000_000}


def empirical(folder: Path, text: str, **keys: Any) -> list[int]:
    """Prompt lengths of requests whose lengths come from a file of that text, beside the scenario."""
    (folder / "numbers.csv").write_text(text, encoding="utf-8")
    given = ", ".join(f"{key}: {value}" for key, value in keys.items())
    overrides = [f"workload.prompt_tokens={{empirical: {{path: numbers.csv, {given}}}}}", "workload.requests=40000"]
    workload = build_workload(load_scenario(write_scenario(folder), overrides), print)
    return [arrival.request.prompt.num_tokens for arrival in workload.arrivals()]


def test_empirical_lengths_come_as_often_as_in_their_file(tmp_path: Path) -> None:
    counts = Counter(empirical(tmp_path, "10\n10\n20\n\n30\n"))
    assert set(counts) == {10, 20, 30}
    assert counts[10] / 40_000 == pytest.approx(0.5, abs=0.015)
    assert counts[20] / 40_000 == pytest.approx(0.25, abs=0.013)


def test_empirical_lengths_can_be_a_column(tmp_path: Path) -> None:
    assert set(empirical(tmp_path, 'a,"b c",d\n1,5,3\n1, 6 ,3\n', column="'b c'")) == {5, 6}


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("10\nten\n", None, "line 2: 'ten' is not a whole number from 1 to 1,000,000,000"),
        ("0\n", None, "line 1: '0' is not a whole number"),
        ("-3\n", None, "line 1: '-3' is not a whole number"),
        ("1.5\n", None, "line 1: '1.5' is not a whole number"),
        ("9" * 30 + "\n", None, "is not a whole number"),
        ("1_0\n", None, "line 1: '1_0' is not"),
        ("a,b\n1,2\n", "c", "line 1: has no column 'c'; choose a, b"),
        ("a,b\n1,2\n1\n", "b", "line 3: b: is missing: the line is too short"),
        ("a,b\n1,x\n", "b", "line 2: b: 'x' is not a whole number"),
        ("a,b\n", "b", "has no line beneath the one that names the columns"),
        ('a,b\n"1,2\n', "b", "line 2: is not CSV"),
        ("", None, "is empty"),
        ("", "b", "is empty"),
    ],
)
def test_a_wrong_file_of_numbers_is_one_line(tmp_path: Path, text: str, column: str | None, message: str) -> None:
    path = tmp_path / "numbers"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ScenarioError) as caught:
        read_numbers(path, column)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_of_numbers_stops_the_run_before_it_starts(tmp_path: Path) -> None:
    overrides = ["workload.output_tokens={empirical: {path: none.txt}}"]
    with pytest.raises(ScenarioError, match=r"none\.txt: the trace cannot be read"):
        build_workload(load_scenario(write_scenario(tmp_path), overrides), print)


@pytest.mark.parametrize(
    ("length", "message"),
    [
        ("{uniform: {min: 9, max: 3}}", r"prompt_tokens\.uniform: min 9 is above max 3"),
        ("{uniform: {min: 0, max: 3}}", r"prompt_tokens\.uniform\.min: 0 is out of range"),
        ("{uniform: {min: 1}}", r"prompt_tokens\.uniform\.max: is required"),
        ("{unifrom: {min: 1}}", r"did you mean 'uniform'\? choose empirical, lognormal, uniform"),
        ("{empirical: {}}", r"prompt_tokens\.empirical\.path: is required"),
        ("{empirical: lengths.csv}", r"prompt_tokens\.empirical: must be a mapping of keys"),
    ],
)
def test_a_wrong_length_is_one_line(tmp_path: Path, length: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        load_scenario(write_scenario(tmp_path), [f"workload.prompt_tokens={length}"])
