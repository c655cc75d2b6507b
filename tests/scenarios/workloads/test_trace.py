"""A trace is played at its own times, in order, and every row of it is accounted for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llmsim.policies.core.request import Arrival
from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.loading import load_scenario
from llmsim.scenarios.schema_workload import TraceSettings
from llmsim.scenarios.traces import formats
from llmsim.scenarios.workloads.building import build_workload
from llmsim.scenarios.workloads.trace import TraceWorkload
from llmsim.tests.support.scenario_files import write_scenario, write_trace

AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n"


def refuse_to_warn(text: str) -> None:
    raise AssertionError(f"warned: {text}")


def rows(*times: float, output: int = 5) -> str:
    """Hash-id rows at those milliseconds, each with its own content."""
    texts = (
        json.dumps({"timestamp": time, "input_length": 20, "output_length": output, "hash_ids": [index, index]})
        for index, time in enumerate(times)
    )
    return "\n".join(texts)


def play(path: Path, warn: Any = refuse_to_warn, **settings: Any) -> list[Arrival]:
    given: dict[str, Any] = {"type": "trace", "path": "unused", "format": "hash_ids"} | settings
    return list(TraceWorkload(TraceSettings.model_validate(given), path, 0, warn).arrivals())


def test_hash_id_times_stay_as_given(tmp_path: Path) -> None:
    played = play(write_trace(tmp_path, rows(250, 250, 1000.25)))
    assert [arrival.time_ns for arrival in played] == [250_000_000, 250_000_000, 1_000_250_000]
    assert [arrival.request.id for arrival in played] == ["r000000", "r000001", "r000002"]
    assert all(arrival.request.arrival_ns == arrival.time_ns for arrival in played)


def test_azure_begins_with_its_first_row(tmp_path: Path) -> None:
    text = AZURE + "2023-11-16 23:59:59.5,3,1\n2023-11-17 00:00:00.0000001,3,1\n"
    played = play(write_trace(tmp_path, text), format="azure")
    assert [arrival.time_ns for arrival in played] == [0, 500_000_100]


def test_time_scale_two_is_twice_as_slow(tmp_path: Path) -> None:
    played = play(write_trace(tmp_path, rows(100, 300)), time_scale=2)
    assert [arrival.time_ns for arrival in played] == [200_000_000, 600_000_000]


def test_limit_plays_only_the_first_rows_and_reads_no_further(tmp_path: Path) -> None:
    path = write_trace(tmp_path, rows(1, 2, 3) + "\nnot a row\n")
    assert len(play(path, limit=3)) == 3
    with pytest.raises(ScenarioError, match="line 4: is not JSON"):
        play(path, limit=4)


def test_block_tokens_default_to_sixteen(tmp_path: Path) -> None:
    path = write_trace(tmp_path, rows(1))
    assert play(path)[0].request.prompt.spans() == [(0, 0, 16), (0, 0, 4)]
    assert play(path, block_tokens=19)[0].request.prompt.spans() == [(0, 0, 19), (0, 0, 1)]


def test_unsorted_rows_are_sorted_with_one_warning_and_equal_times_keep_their_order(tmp_path: Path) -> None:
    warnings: list[str] = []
    path = write_trace(tmp_path, rows(5, 3, 9, 3, 9))
    played = play(path, warnings.append)
    assert [arrival.time_ns // 1_000_000 for arrival in played] == [3, 3, 5, 9, 9]
    assert [arrival.request.prompt.contents[0] for arrival in played] == [1, 3, 0, 2, 4]
    assert [arrival.request.id for arrival in played] == [f"r{index:06d}" for index in range(5)]
    assert warnings == [f"{path}: row 2: 2 of 5 rows go back in time; sorted by time"]


def test_unsorted_azure_begins_with_its_earliest_row(tmp_path: Path) -> None:
    text = AZURE + "2023-11-16 10:00:01,3,1\n2023-11-16 10:00:00,4,1\n"
    played = play(write_trace(tmp_path, text), [].append, format="azure")
    assert [(arrival.time_ns, arrival.request.prompt.num_tokens) for arrival in played] == [
        (0, 4),
        (10**9, 3),
    ]


def test_sorted_trace_is_streamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_trace(tmp_path, rows(*range(100)))
    settings = TraceSettings(type="trace", path="unused", format="hash_ids")
    workload = TraceWorkload(settings, path, 0, refuse_to_warn)
    taken = []
    reader = formats.read_hash_ids

    def counted(path: Path, block_tokens: int) -> Any:
        for row in reader(path, block_tokens):
            taken.append(row)
            yield row

    monkeypatch.setattr(formats, "read_hash_ids", counted)
    arrivals = workload.arrivals()
    next(arrivals)
    assert len(taken) == 1


def test_bad_row_is_told_before_anything_is_played(tmp_path: Path) -> None:
    path = write_trace(tmp_path, rows(1, 2, float("nan")))
    settings = TraceSettings(type="trace", path="unused", format="hash_ids")
    with pytest.raises(ScenarioError, match="line 3: timestamp: must be a finite number, not nan"):
        TraceWorkload(settings, path, 0, refuse_to_warn)


def test_rows_without_prompt_or_output_are_refused_not_dropped(tmp_path: Path) -> None:
    text = AZURE + "2023-11-16 10:00:00,0,1\n2023-11-16 10:00:01,4,0\n2023-11-16 10:00:02,4,1\n"
    played = play(write_trace(tmp_path, text), format="azure")
    assert [arrival.refusal for arrival in played] == ["the prompt is empty", "the output is empty", None]


def test_row_without_output_is_refused_whatever_the_client_asks_for(tmp_path: Path) -> None:
    (arrival,) = play(write_trace(tmp_path, rows(1, output=0)), max_tokens={"fixed": 100})
    assert arrival.refusal == "the output is empty"


def test_playing_twice_yields_the_same_requests(tmp_path: Path) -> None:
    settings = TraceSettings(type="trace", path="unused", format="hash_ids")
    workload = TraceWorkload(settings, write_trace(tmp_path, rows(1, 2)), 0, refuse_to_warn)
    assert [repr(arrival) for arrival in workload.arrivals()] == [repr(arrival) for arrival in workload.arrivals()]
    assert list(workload.on_finish("r000000", 5)) == []


def test_path_is_relative_to_the_scenarios_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    scenario_path = write_scenario(tmp_path / "here")
    path = write_trace(tmp_path, rows(1))
    monkeypatch.chdir("/")
    overrides = [f"workload={{type: trace, format: hash_ids, path: ../{path.name}}}"]
    workload = build_workload(load_scenario(scenario_path, overrides), refuse_to_warn)
    assert len(list(workload.arrivals())) == 1


def test_missing_trace_says_what_its_path_is_relative_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    scenario_path = write_scenario(tmp_path / "here")
    overrides = ["workload={type: trace, format: hash_ids, path: trace}"]
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ScenarioError) as caught:
        build_workload(load_scenario(scenario_path, overrides), refuse_to_warn)
    says = f"{scenario_path}: workload.path: there is no file {tmp_path}/here/trace; paths are relative to the "
    assert str(caught.value) == says + "scenario's folder"
    write_trace(tmp_path, rows(1))
    warned: list[str] = []
    workload = build_workload(load_scenario(scenario_path, overrides), warned.append)
    assert len(list(workload.arrivals())) == 1
    assert warned == ["workload.path: trace is taken from the working directory, not the scenario's folder"]


@pytest.mark.parametrize("limit", [4, 3])
def test_rate_stretches_the_recorded_times_to_a_mean(tmp_path: Path, limit: int) -> None:
    path = write_trace(tmp_path, rows(1000, 1500, 2500, 3000))
    times_s = [arrival.time_ns / 1e9 for arrival in play(path, rate=0.5, limit=limit)]
    scale = {4: 3.0, 3: 4 / 1.5}[limit]  # 4 rows in 2 s become 4 rows in 6 s
    assert times_s == pytest.approx([scale * time for time in (1.0, 1.5, 2.5, 3.0)[:limit]])


def test_rate_of_unsorted_rows_is_that_of_the_sorted(tmp_path: Path) -> None:
    path = write_trace(tmp_path, rows(3000, 1000, 2000))
    played = play(path, [].append, rate=4)
    assert [arrival.time_ns for arrival in played] == [250_000_000, 500_000_000, 750_000_000]


@pytest.mark.parametrize("times", [(7.0,), (7.0, 7.0)])
def test_rate_needs_two_times(tmp_path: Path, times: tuple[float, ...]) -> None:
    with pytest.raises(ScenarioError, match="rate needs rows at two times at least"):
        play(write_trace(tmp_path, rows(*times)), rate=1.0)


def test_texts_come_at_the_rate_and_are_told_to_be_estimates_once(tmp_path: Path) -> None:
    path = write_trace(tmp_path, '{"prompt": "abcdefgh", "output_tokens": 3}\n' * 5)
    warned: list[str] = []
    played = play(path, warned.append, format="custom", rate=2.0, arrivals="constant", chars_per_token=3)
    assert [arrival.time_ns for arrival in played] == [index * 500_000_000 for index in range(5)]
    assert [arrival.request.prompt.num_tokens for arrival in played] == [3] * 5
    says = "lengths of texts are estimates: 3 characters a token (workload.chars_per_token)"
    assert warned == [f"{path}: {says}"]
    poisson = [arrival.time_ns for arrival in play(path, [].append, format="custom", rate=2.0)]
    assert poisson == sorted(set(poisson))
    assert poisson != [arrival.time_ns for arrival in played]


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ("format: custom", "format: custom has no times; give workload.rate, requests a second"),
        ("format: custom, rate: 1, time_scale: 2", "rate and time_scale exclude each other: both stretch the times"),
        ("format: azure, rate: 1, time_scale: 2", "rate and time_scale exclude each other: both stretch the times"),
        ("format: azure, rate: 0", "0 is out of range: must be at least 1e-06"),
        ("format: azure, rate: .nan", "must be a finite number, not nan"),
        ("format: azure, arrivals: poisson", "arrivals goes with formats without times; azure has its own"),
        ("format: azure, chars_per_token: 4", "chars_per_token goes with texts; azure gives numbers of tokens"),
        ("format: custom, rate: 1, chars_per_token: 0", "0 is out of range: must be at least 0.5"),
        ("format: bailian, block_tokens: 16", "block_tokens goes with format: hash_ids only; bailian sets its own"),
    ],
)
def test_keys_that_do_not_belong_together_are_one_line(tmp_path: Path, keys: str, says: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load_scenario(write_scenario(tmp_path), [f"workload={{type: trace, path: x, {keys}}}"])
    assert says in str(caught.value)
