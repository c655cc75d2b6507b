"""A result folder appears whole or not at all, and the same run gives the same bytes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.results import ResultFolder, next_free
from llmsim.sim.metrics import summarize
from llmsim.sim.recorder import Recorder
from llmsim.tests.support.synthetic import facts, record_busy_run

FILES = [
    "events.parquet",
    "itl.parquet",
    "requests.parquet",
    "scenario.yaml",
    "steps.parquet",
    "summary.json",
]


def write_run(result: ResultFolder, seed: int = 0) -> None:
    with result as folder:
        recorder = Recorder(folder.path)
        record_busy_run(recorder, seed=seed)
        folder.write_summary(summarize(recorder, facts()))
        folder.write_scenario({"name": "made-up", "engine": {"preset": "vllm"}})


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_result_appears_whole_and_nothing_else_stays(tmp_path: Path) -> None:
    write_run(ResultFolder(tmp_path / "deep" / "out"))
    assert os.listdir(tmp_path / "deep") == ["out"]
    assert sorted(contents(tmp_path / "deep" / "out")) == FILES
    scenario = yaml.safe_load((tmp_path / "deep" / "out" / "scenario.yaml").read_text())
    assert list(scenario) == ["name", "engine"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_run_leaves_nothing(tmp_path: Path, error: type[BaseException]) -> None:
    def half_a_run() -> None:
        with ResultFolder(tmp_path / "results" / "out") as folder:
            folder.write_scenario({"name": "half"})
            assert not (tmp_path / "results" / "out").exists()
            raise error

    with pytest.raises(error):
        half_a_run()
    assert os.listdir(tmp_path) == []


def test_an_existing_folder_is_refused_without_force(tmp_path: Path) -> None:
    write_run(ResultFolder(tmp_path / "out"))
    before = contents(tmp_path / "out")
    with pytest.raises(ScenarioError, match=r"exists already.*--force"):
        ResultFolder(tmp_path / "out")
    assert contents(tmp_path / "out") == before


def test_force_replaces_a_result_only_once_the_new_one_is_whole(tmp_path: Path) -> None:
    write_run(ResultFolder(tmp_path / "out"), seed=1)
    (tmp_path / "out" / "notes.txt").write_text("mine")
    before = contents(tmp_path / "out")
    with pytest.raises(KeyboardInterrupt), ResultFolder(tmp_path / "out", force=True):
        raise KeyboardInterrupt
    assert contents(tmp_path / "out") == before
    write_run(ResultFolder(tmp_path / "out", force=True), seed=2)
    assert os.listdir(tmp_path) == ["out"]
    assert sorted(contents(tmp_path / "out")) == FILES
    assert contents(tmp_path / "out")["steps.parquet"] != before["steps.parquet"]


def test_the_old_result_comes_back_if_the_new_one_cannot_take_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(ResultFolder(tmp_path / "out"))
    before, rename = contents(tmp_path / "out"), Path.rename

    def failing_rename(self: Path, target: Path) -> Path:
        if ".partial-" in self.name:
            raise OSError("no space")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing_rename)
    with pytest.raises(OSError, match="no space"):
        write_run(ResultFolder(tmp_path / "out", force=True), seed=2)
    assert os.listdir(tmp_path) == ["out"]
    assert contents(tmp_path / "out") == before


def test_force_does_not_touch_folders_that_hold_no_result(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.tex").write_text("years of work")
    (tmp_path / "file").write_text("")
    for name in ("home", "file"):
        with pytest.raises(ScenarioError, match="is not a result folder"):
            ResultFolder(tmp_path / name, force=True)
    (tmp_path / "empty").mkdir()
    write_run(ResultFolder(tmp_path / "empty", force=True))
    assert sorted(contents(tmp_path / "empty")) == FILES


@pytest.mark.parametrize("target", [".", "..", "results/.."])
def test_a_folder_without_a_name_of_its_own_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for force in (False, True):
        with pytest.raises(ScenarioError, match="names no folder that could be made or replaced"):
            ResultFolder(Path(target), force=force)


@pytest.mark.parametrize("target", ["file/new", "file/a/new", "x" * 240])
def test_one_that_cannot_be_made_is_told_before_anything_is_written(tmp_path: Path, target: str) -> None:
    (tmp_path / "file").write_text("kept")
    with pytest.raises(ScenarioError, match="cannot be made: "):
        ResultFolder(tmp_path / target)
    ResultFolder(tmp_path / "a" / "new")
    assert os.listdir(tmp_path) == ["file"]


def test_numbers_go_up(tmp_path: Path) -> None:
    results = tmp_path / "results"
    assert next_free("agent", results) == results / "agent-001"
    for name in ("agent-001", "agent-007", "agent-x", "agent2-050", "agent-12"):
        (results / name).mkdir(parents=True)
    assert next_free("agent", results) == results / "agent-008"
    with pytest.raises(ScenarioError, match=r"'\.\./x' cannot name"):
        next_free("../x", results)


def test_two_runs_at_once_get_two_numbers(tmp_path: Path) -> None:
    slow = ResultFolder.numbered("agent", tmp_path)
    with slow:
        write_run(ResultFolder.numbered("agent", tmp_path))
    assert slow.target == tmp_path / "agent-002"
    assert sorted(os.listdir(tmp_path)) == ["agent-001", "agent-002"]


def test_another_process_writes_the_same_bytes(tmp_path: Path) -> None:
    write_run(ResultFolder(tmp_path / "here"))
    module = "llmsim.tests.scenarios.test_results"
    code = f"import sys; from pathlib import Path; from {module} import *; write_run(ResultFolder(Path(sys.argv[1])))"
    environment = {**os.environ, "PYTHONHASHSEED": "123", "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "there")], env=environment, check=True)
    assert contents(tmp_path / "here") == contents(tmp_path / "there")
    assert not any(str(tmp_path).encode() in data for data in contents(tmp_path / "here").values())
