"""The profiles that come with the package can be read, say where they are from, and price a scenario by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmsim.calibrate.shipped import shipped_profiles
from llmsim.scenarios.api import run
from llmsim.scenarios.errors import ScenarioError
from llmsim.sim.cost_model.profile import read_profile
from llmsim.tests.support.scenario_files import write_scenario

SCENARIO = """
name: by-name
model: small-cpu
hardware: {profile: cpu-reference}
engine: {dtype: float32, num_gpu_blocks_override: 200, max_model_len: 1024}
workload: {type: independent, rate: 1, requests: 5, prompt_tokens: 100, output_tokens: 10}
"""


@pytest.mark.parametrize("name", shipped_profiles())
def test_a_shipped_profile_says_where_it_is_from_and_how_good_it_is(name: str) -> None:
    header = read_profile(shipped_profiles()[name]).header
    assert header.name == name
    assert header.fit is not None
    assert header.fit.held_out.median <= 0.05
    assert header.fit.held_out.p95 <= 0.15
    assert header.measured_at is not None
    assert header.source


def test_a_scenario_names_a_shipped_profile(tmp_path: Path) -> None:
    result = run(write_scenario(tmp_path, SCENARIO))
    assert result.summary["priced_by"] == "cpu-reference"
    assert result.summary["step_time_from"]["data_sheet"] == 0


def test_a_folder_of_the_same_name_beside_the_scenario_comes_first(tmp_path: Path) -> None:
    (tmp_path / "cpu-reference").mkdir()
    with pytest.raises(ScenarioError, match="cpu-reference"):
        run(write_scenario(tmp_path, SCENARIO))
