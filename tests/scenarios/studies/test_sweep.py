"""A sweep's figures are those of single runs, whatever was known before and however many processes there were."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NoReturn

import pandas as pd
import pytest
import yaml

import llmsim
from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.studies import sweep as sweep_module
from llmsim.scenarios.studies.flattening import flat
from llmsim.scenarios.studies.interrupted import StudyInterrupted
from llmsim.scenarios.studies.sweep import Sweep
from llmsim.tests.support.command_line import contents
from llmsim.tests.support.scenario_files import BUSY

RAW: dict[str, Any] = yaml.safe_load(BUSY)
RAW["workload"]["requests"] = 40
CHUNKS = {"policies.chunk_size.tokens": [64, 192]}


def swept(folder: Path, vary: Any = CHUNKS, seeds: int = 2, jobs: int = 1, **overrides: object) -> pd.DataFrame:
    given = {key.replace("__", "."): value for key, value in overrides.items()}
    return llmsim.sweep(RAW, vary, seeds=seeds, output=folder, jobs=jobs, overrides=given)


def test_every_row_is_the_summary_of_a_single_run(tmp_path: Path) -> None:
    frame = swept(tmp_path / "s")
    assert list(frame.columns[:2]) == ["policies.chunk_size.tokens", "seed"]
    assert frame[frame.columns[:2]].values.tolist() == [[64, 0], [64, 1], [192, 0], [192, 1]]
    for _, row in frame.iterrows():
        tokens, seed = int(row["policies.chunk_size.tokens"]), int(row["seed"])
        alone = llmsim.run(RAW, {"policies.chunk_size.tokens": tokens, "run.seed": seed}).summary
        figures = flat({**alone, "departures": {}})
        want = {key: value for key, value in figures.items() if value is not None}
        assert {key: row[key] for key in want} == want
        assert row.drop(["policies.chunk_size.tokens"]).dropna().keys().sort_values().tolist() == sorted(want)
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "s" / "sweep.parquet"), frame)


def test_two_settings_see_the_same_traffic() -> None:
    results = [llmsim.run(RAW, {"policies.chunk_size.tokens": tokens}) for tokens in (64, 192)]
    columns = ["request_id", "tenant", "intended_s", "prompt_tokens", "output_tokens"]
    one, other = (result.requests[columns].sort_values("request_id", ignore_index=True) for result in results)
    pd.testing.assert_frame_equal(one, other)
    assert results[0].summary["ttft_s"] != results[1].summary["ttft_s"]


def test_processes_and_interruptions_leave_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    swept(tmp_path / "whole")
    swept(tmp_path / "parallel", jobs=2)
    measure, runs = sweep_module.measure, []

    def interrupted_at_the_third(assembly: Any) -> Any:
        runs.append(assembly)
        if len(runs) == 3:
            raise KeyboardInterrupt
        return measure(assembly)

    monkeypatch.setattr(sweep_module, "measure", interrupted_at_the_third)
    with pytest.raises(StudyInterrupted, match=r"^interrupted; 2 of 4 runs are kept in .*the same command goes on"):
        swept(tmp_path / "resumed")
    assert not (tmp_path / "resumed" / "sweep.parquet").exists()
    swept(tmp_path / "resumed")
    assert len(runs) == 5  # the third again, and the fourth
    whole = contents(tmp_path / "whole")
    assert len(whole) == 6
    assert contents(tmp_path / "parallel") == whole
    assert contents(tmp_path / "resumed") == whole


def never(*_: object) -> NoReturn:
    raise AssertionError("ran again")


def test_more_values_and_seeds_compute_only_what_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = swept(tmp_path / "s")
    more = swept(tmp_path / "s", {"policies.chunk_size.tokens": [32, 64, 192]}, seeds=3)
    assert len(more) == 9
    monkeypatch.setattr(sweep_module, "measure", never)
    pd.testing.assert_frame_equal(swept(tmp_path / "s"), first)


def test_points_that_are_the_same_run_are_run_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vary = {"engine.max_num_batched_tokens": [512], "policies.chunk_size": [None, {"name": "unlimited"}]}
    frame = swept(tmp_path / "s", vary, seeds=1)
    assert len(frame) == 2
    assert len(os.listdir(tmp_path / "s" / "points")) == 1
    assert frame["policies.chunk_size"].tolist() == ["null", '{"name": "unlimited"}']


def test_whole_policies_and_models_can_be_varied(tmp_path: Path) -> None:
    policies = [{"name": "fixed", "tokens": 64}, {"name": "threshold", "tokens": 100}, {"name": "unlimited"}]
    frame = swept(tmp_path / "s", {"policies.chunk_size": policies, "model": ["tiny"]}, seeds=1)
    assert frame["model"].tolist() == ["tiny"] * 3
    assert frame["policies.chunk_size"].tolist()[2] == '{"name": "unlimited"}'
    assert frame["ttft_s.p99"].nunique() == 3
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "s" / "sweep.parquet"), frame)


def test_a_changed_scenario_is_refused_in_its_folder(tmp_path: Path) -> None:
    swept(tmp_path / "s", seeds=1)
    before = contents(tmp_path / "s")
    with pytest.raises(ScenarioError, match=r"another scenario: workload\.rate is 150 there, 100 here; choose another"):
        swept(tmp_path / "s", seeds=1, workload__rate=100)
    with pytest.raises(ScenarioError, match=r"another scenario: model_x is not stated there, 1 here"):
        _claim(tmp_path / "s", {**RAW, "model_x": 1})
    assert contents(tmp_path / "s") == before
    swept(tmp_path / "s", seeds=1, policies__chunk_size__tokens=100)  # it is varied: its own value does not matter


def _claim(folder: Path, stated: dict[str, Any]) -> None:
    sweep_module.SweepFolder(folder).claim(stated, CHUNKS.keys(), llmsim.__version__, {})


def test_another_version_and_other_folders_are_refused(tmp_path: Path) -> None:
    swept(tmp_path / "s", seeds=1)
    with pytest.raises(ScenarioError, match=r"holds a sweep by llmsim 0\.1\.0, this is 9\.9"):
        sweep_module.SweepFolder(tmp_path / "s").claim(RAW, [], "9.9", {})
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for name in ("other", "file"):
        with pytest.raises(ScenarioError, match="is not a sweep's folder"):
            swept(tmp_path / name)
    (tmp_path / "s" / "sweep.json").write_text("[")
    with pytest.raises(ScenarioError, match=r"sweep\.json: cannot be read"):
        swept(tmp_path / "s")


def test_a_wrong_point_is_said_before_anything_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep_module, "measure", never)
    with pytest.raises(ScenarioError, match=r"policies\.chunk_size\.tokens: 1024 is out of range: at most engine\."):
        swept(tmp_path / "s", {"policies.chunk_size.tokens": [64, 1024]})
    with pytest.raises(ScenarioError, match="unknown key; did you mean 'rate'"):
        swept(tmp_path / "s", {"workload.rat": [1]})
    trace = {"workload": [{"type": "trace", "format": "azure", "path": "none"}]}
    with pytest.raises(ScenarioError, match="there is no file none"):
        swept(tmp_path / "s", trace)
    with pytest.raises(ScenarioError, match="seeds: 0 is out of range"):
        swept(tmp_path / "s", seeds=0)
    assert not (tmp_path / "s").exists()


def test_a_trace_with_other_rows_is_computed_again(tmp_path: Path) -> None:
    head, row = "TIMESTAMP,ContextTokens,GeneratedTokens\n", "2023-11-16 18:15:46.68,374,44\n"
    trace, workload = tmp_path / "t.csv", {"type": "trace", "format": "azure", "path": str(tmp_path / "t.csv")}
    counts = []
    for num_rows in (1, 2):
        trace.write_text(head + row * num_rows)
        study = Sweep({**RAW, "workload": workload}, None, {}, num_seeds=1, folder=tmp_path / "s", warn=print)
        assert study.num_known == 0
        counts += study.run(1)["num_requests.finished"].tolist()
    assert counts == [1, 2]


@pytest.mark.parametrize("in_a_mixture", [False, True])
def test_a_file_of_lengths_with_other_numbers_is_computed_again(tmp_path: Path, in_a_mixture: bool) -> None:
    lengths = tmp_path / "lengths"
    workload: dict[str, Any] = {"type": "independent", "output_tokens": {"empirical": {"path": str(lengths)}}}
    if in_a_mixture:
        workload = {"type": "mixture", "parts": [{"tenant": "a", "workload": workload}]}
    raw = {**RAW, "workload": {**workload, "requests": 5, "rate": 10}}
    tokens = []
    for text, num_known in (("5\n", 0), ("7\n", 0), ("7\n", 1), ("5\n", 1)):
        lengths.write_text(text)
        study = Sweep(raw, None, {}, num_seeds=1, folder=tmp_path / "s", warn=print)
        assert study.num_known == num_known
        frame = study.run(1)
        tokens.append(round(frame["output_tokens_per_s"][0] * frame["duration_s"][0]))
    assert tokens == [25, 35, 35, 25]


def test_a_missing_file_of_lengths_is_said_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep_module, "measure", never)
    raw = {**RAW, "workload": {"type": "independent", "output_tokens": {"empirical": {"path": "none"}}}}
    with pytest.raises(ScenarioError, match="none"):
        Sweep(raw, None, {}, num_seeds=1, folder=tmp_path / "s", warn=print)
    assert not (tmp_path / "s").exists()


def test_without_a_folder_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert len(llmsim.sweep(RAW, {"workload.rate": [100, 150]}, jobs=1)) == 2
    assert list(tmp_path.iterdir()) == []
