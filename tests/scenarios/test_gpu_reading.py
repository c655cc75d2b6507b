"""A GPU given as the path of a data sheet, and what is said of a sheet that is wrong."""

from __future__ import annotations

import dataclasses
from importlib.resources import files
from pathlib import Path

import pytest

from llmsim.policies.core import specs
from llmsim.scenarios.assembly import Assembly, assemble
from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.gpu_reading import read_data_sheet
from llmsim.scenarios.loading import load_scenario
from llmsim.tests.support.scenario_files import write_scenario

SHEET = "name: mine\nmemory_gib: 48\nbandwidth_gb_s: 900\nbf16_tflop_s: 200\n"


def assembled(folder: Path, sheet: str | None, *overrides: str, warnings: list[str] | None = None) -> Assembly:
    if sheet is not None:
        (folder / "my_gpu.yaml").write_text(sheet)
    said = [] if warnings is None else warnings
    return assemble(load_scenario(write_scenario(folder), ["hardware.gpu=./my_gpu.yaml", *overrides]), said.append)


@pytest.mark.parametrize("name", specs.gpu_names())
def test_the_catalogs_own_files_are_data_sheets(tmp_path: Path, name: str) -> None:
    (tmp_path / "copy.yaml").write_text((files("llmsim.policies.core") / f"catalog/gpus/{name}.yaml").read_text())
    assert read_data_sheet(tmp_path / "copy.yaml") == specs.gpu(name)


def test_a_sheet_beside_the_scenario_is_its_gpu(tmp_path: Path) -> None:
    assembly = assembled(tmp_path, SHEET)
    assert (assembly.gpu.name, assembly.gpu.memory_bytes, assembly.gpu.bf16_flop_per_s) == ("mine", 48 * 2**30, 200e12)
    assert assembly.gpu.fp8_flop_per_s is assembly.gpu.interconnect_bytes_per_s is None
    assert assembly.engine.max_num_batched_tokens == 2048
    assert assembly.resolved()["hardware"]["gpu"] == "./my_gpu.yaml"


def test_a_copy_of_a_known_gpu_gives_the_same_run(tmp_path: Path) -> None:
    text = (files("llmsim.policies.core") / "catalog/gpus/a100-80g.yaml").read_text()
    copy = assembled(tmp_path, text)
    known = assemble(load_scenario(write_scenario(tmp_path), ["hardware.gpu=a100-80g"]))
    assert (copy.engine, copy.budget, copy.gpu) == (known.engine, known.budget, known.gpu)


def test_a_sheet_in_the_working_directory_is_taken_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_gpu.yaml").write_text(SHEET)
    (tmp_path / "scenarios").mkdir()
    monkeypatch.chdir(tmp_path)
    warnings: list[str] = []
    assembled(tmp_path / "scenarios", None, warnings=warnings)
    assert warnings == ["hardware.gpu: ./my_gpu.yaml is taken from the working directory, not the scenario's folder"]


@pytest.mark.parametrize(
    ("sheet", "says"),
    [
        ("", "is empty; a GPU is a mapping with name, memory_gib, bandwidth_gb_s, bf16_tflop_s"),
        ("[1]", "holds a list, not a mapping of keys"),
        ("name: mine\n", "memory_gib: is required"),
        (SHEET + "fp8_tflops: 400\n", "fp8_tflops: unknown key; did you mean 'fp8_tflop_s'?"),
        (SHEET.replace("48", "0"), "memory_gib: 0 is out of range: must be above 0.0"),
        (SHEET.replace("900", ".nan"), "bandwidth_gb_s: must be a finite number, not nan"),
        (SHEET.replace("900", "fast"), "bandwidth_gb_s: must be a number, not 'fast'"),
        (SHEET.replace("200", "1e300"), "bf16_tflop_s: 1e+300 is out of range: must be at most 1000000000.0"),
        (SHEET + "name: again\n", "line 5: the key 'name' is given twice"),
    ],
)
def test_a_bad_sheet_is_one_line_that_names_file_and_key(tmp_path: Path, sheet: str, says: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        assembled(tmp_path, sheet)
    assert str(caught.value).startswith(f"{tmp_path}/my_gpu.yaml: {says}")
    assert "\n" not in str(caught.value)


def test_a_sheet_that_is_not_there_is_named_with_the_key(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"s\.yaml: hardware\.gpu: there is no file .*/my_gpu\.yaml; paths are"):
        assembled(tmp_path, None)


def test_gpus_without_a_link_cannot_share_a_model(tmp_path: Path) -> None:
    assembly = assembled(tmp_path, SHEET, "hardware.tensor_parallel=1")
    assert dataclasses.replace(assembly.gpu, interconnect_bytes_per_s=None) == assembly.gpu
    with pytest.raises(ScenarioError) as caught:
        assembled(tmp_path, SHEET, "hardware.tensor_parallel=2")
    says = "hardware.tensor_parallel: mine has no link to other GPUs; tensor_parallel must be 1"
    assert str(caught.value) == f"{tmp_path}/s.yaml: {says}"
