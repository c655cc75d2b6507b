"""A model given as the path of a config.json, and what is said of a file that is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llmsim.scenarios.assembly import Assembly, assemble
from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.loading import load_scenario
from llmsim.tests.support.hf_configs import LLAMA_3_2_1B
from llmsim.tests.support.scenario_files import write_scenario


def assembled(folder: Path, model: str, warnings: list[str] | None = None) -> Assembly:
    said = [] if warnings is None else warnings
    return assemble(load_scenario(write_scenario(folder), [f"model={model}"]), said.append)


def test_a_config_beside_the_scenario_is_its_model(tmp_path: Path) -> None:
    (tmp_path / "my-model").mkdir()
    (tmp_path / "my-model" / "config.json").write_text(json.dumps(LLAMA_3_2_1B))
    by_name, by_path = (assembled(tmp_path, model) for model in ("llama-3.2-1b", "my-model/config.json"))
    assert by_path.model.num_parameters == by_name.model.num_parameters == 1_235_814_400
    assert by_path.budget == by_name.budget
    assert by_path.resolved()["model"] == "my-model/config.json"


def test_a_config_in_the_working_directory_is_taken_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "config.json").write_text(json.dumps(LLAMA_3_2_1B))
    monkeypatch.chdir(tmp_path)
    warnings: list[str] = []
    assert assembled(tmp_path / "scenarios", "config.json", warnings).model.num_layers == 16
    assert warnings == ["model: config.json is taken from the working directory, not the scenario's folder"]


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "is not JSON: "),
        (b"\xff\xfe\x00", "is not JSON: "),
        (b"[" * 100_000, "is not JSON: "),
        (b"[]", "holds a list, not an object of fields"),
        (json.dumps({**LLAMA_3_2_1B, "hidden_size": -1}).encode(), "hidden_size: must be a whole number"),
        (json.dumps({**LLAMA_3_2_1B, "architectures": ["MixtralForCausalLM"]}).encode(), "architectures: 'Mixtral"),
    ],
)
def test_a_bad_config_is_one_line_that_names_file_and_field(tmp_path: Path, raw: bytes, says: str) -> None:
    (tmp_path / "config.json").write_bytes(raw)
    with pytest.raises(ScenarioError) as caught:
        assembled(tmp_path, "config.json")
    assert str(caught.value).startswith(f"{tmp_path}/config.json: {says}")
    assert "\n" not in str(caught.value)


def test_a_config_that_is_not_there_is_named_with_the_key(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError) as caught:
        assembled(tmp_path, "nowhere/config.json")
    assert str(caught.value) == (
        f"{tmp_path}/s.yaml: model: there is no file {tmp_path}/nowhere/config.json;"
        " paths are relative to the scenario's folder"
    )


def test_a_folder_is_no_config(tmp_path: Path) -> None:
    (tmp_path / "config.json").mkdir()
    with pytest.raises(ScenarioError, match=r"config\.json: cannot be read: Is a directory"):
        assembled(tmp_path, "config.json")
