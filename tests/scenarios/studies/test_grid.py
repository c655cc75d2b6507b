"""Which points a sweep has, and what is no `--vary`."""

from __future__ import annotations

import pytest

from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.studies.grid import Point, check_vary, column, grid, parse_vary


def test_every_combination_is_run_with_every_seed() -> None:
    points = grid({"a": [1, 2], "b.c": ["x", "y"]}, 7, 2)
    assert [(*point.values.values(), point.seed) for point in points] == [
        (a, b, seed) for a in (1, 2) for b in ("x", "y") for seed in (7, 8)
    ]
    assert points[0].overrides() == {"a": 1, "b.c": "x", "run.seed": 7}
    assert grid({}, 0, 2) == [Point({}, 0), Point({}, 1)]


def test_values_are_written_as_yaml() -> None:
    vary = parse_vary(["workload.rate=4,8.5", "workload.max_tokens=exact,{fixed: 10},{factor: 2.0}", "a.b=true, null"])
    assert vary == {
        "workload.rate": [4, 8.5],
        "workload.max_tokens": ["exact", {"fixed": 10}, {"factor": 2.0}],
        "a.b": [True, None],
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["workload.rate"], "--vary workload.rate: write --vary KEY=a,b,c, as in workload.rate=4,8,16"),
        (["=4"], "--vary =4: write --set key.path=value, as in engine.max_num_seqs=64"),
        (["a="], "--vary a: has no values; write --vary KEY=a,b,c"),
        (["a=1,2,1"], "--vary a: holds 1 twice"),
        (["a=1", "a=2"], "--vary a=2: a is varied twice; give all its values at once"),
        (["run.seed=1,2"], "--vary run.seed: is not varied; --seeds N counts from it"),
        (["w={rate: 1},{rate: 2}", "w.rate=4"], "--vary w.rate: lies in w, which is varied as well"),
        (["a=[1"], "--vary a=[1: line 1: expected ',' or ']', but got '<stream end>'"),
    ],
)
def test_what_is_no_vary_is_one_line(options: list[str], message: str) -> None:
    with pytest.raises(ScenarioError) as raised:
        parse_vary(options)
    assert str(raised.value) == message


def test_the_order_of_keys_makes_no_other_value() -> None:
    with pytest.raises(ScenarioError, match="twice"):
        check_vary({"a": [{"x": 1, "y": 2}, {"y": 2, "x": 1}]})


def test_a_column_keeps_numbers_and_texts_and_writes_mixtures_as_json() -> None:
    assert column([1, 2.5]) == [1, 2.5]
    assert column([True, False]) == [True, False]
    assert column(["fcfs", "priority"]) == ["fcfs", "priority"]
    assert column(["exact", {"fixed": 10}, 3, None]) == ["exact", '{"fixed": 10}', "3", "null"]
    assert column([1, True]) == ["1", "true"]
