"""`llmsim.run` from Python: the figures and tables of the command line, without a folder to look after."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml

import llmsim
from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.loading import load_scenario
from llmsim.tests.support import command_line
from llmsim.tests.support.command_line import strict_json
from llmsim.tests.support.scenario_files import BUSY, MINIMAL, write_scenario

FEW = {"workload.requests": 30}


def test_the_result_is_that_of_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_scenario(tmp_path, BUSY)
    assert command_line.llmsim(capsys, "run", path, "-o", tmp_path / "out", "--set", "workload.requests=150").code == 0
    ran, opened = llmsim.run(path, {"workload.requests": 150}), llmsim.Result.open(tmp_path / "out")
    assert ran.summary == opened.summary == strict_json((tmp_path / "out" / "summary.json").read_text())
    assert ran.scenario == opened.scenario
    for table in ("requests", "steps", "events", "itl"):
        frame = getattr(ran, table)
        assert len(frame) > 0
        pd.testing.assert_frame_equal(frame, pd.read_parquet(tmp_path / "out" / f"{table}.parquet"))
        assert getattr(ran, table) is frame  # read once


def test_a_path_a_mapping_and_a_scenario_mean_the_same(tmp_path: Path) -> None:
    path = write_scenario(tmp_path, BUSY)
    results = [
        llmsim.run(str(path), FEW),
        llmsim.run(path, ["workload.requests=30"]),
        llmsim.run(yaml.safe_load(BUSY), FEW),
        llmsim.run(load_scenario(path), FEW),
        llmsim.run(load_scenario(path, FEW)),
    ]
    assert results[0].summary["num_requests"]["finished"] == 30
    assert all(result.summary == results[0].summary for result in results)


def test_the_temporary_folder_goes_with_the_result_and_one_that_was_named_stays(tmp_path: Path) -> None:
    path = write_scenario(tmp_path)
    result = llmsim.run(path, FEW)
    folder = result.folder
    assert folder.is_dir()
    del result
    gc.collect()
    assert not folder.parent.exists()
    kept = llmsim.run(path, FEW, output=tmp_path / "out").folder
    gc.collect()
    assert kept == tmp_path / "out"
    assert llmsim.Result.open(kept).summary["scenario"] == "small"
    with pytest.raises(ScenarioError, match="exists already"):
        llmsim.run(path, FEW, output=kept)
    llmsim.run(path, FEW, output=kept, force=True)


def test_a_mistake_leaves_no_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    trace = {"workload": {"type": "trace", "format": "azure", "path": "none.csv"}}
    with pytest.raises(ScenarioError, match=r"there is no file none\.csv"):
        llmsim.run(yaml.safe_load(MINIMAL) | trace)
    with pytest.raises(ScenarioError, match=r"^workload\.rat: unknown key; did you mean 'rate'"):
        llmsim.run(yaml.safe_load(MINIMAL), {"workload.rat": 3})
    with pytest.raises(ScenarioError, match="write --set key"):
        llmsim.run(yaml.safe_load(MINIMAL), {"workload..rate": 3})
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_no_result_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"no summary\.json"):
        llmsim.Result.open(tmp_path)
    (tmp_path / "summary.json").write_text("{}")
    with pytest.raises(ScenarioError, match="tables are missing"):
        llmsim.Result.open(tmp_path)
    (tmp_path / "summary.json").write_text("{")
    with pytest.raises(ScenarioError, match="cannot be read"):
        llmsim.Result.open(str(tmp_path))


def test_importing_llmsim_imports_nothing_heavy() -> None:
    program = "import llmsim, sys; print([m for m in ('numpy', 'pandas', 'simpy', 'pydantic') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (found.stdout, found.stderr) == ("[]\n", "")


def test_the_package_names_what_it_exports_and_nothing_else() -> None:
    assert all(hasattr(llmsim, name) for name in llmsim.__all__)
    with pytest.raises(AttributeError, match="no attribute 'runn'"):
        _ = llmsim.runn
