"""`llmsim profile` from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from llmsim.tests.support.command_line import llmsim
from llmsim.tests.support.profiling import be_quick, small_model


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    be_quick(monkeypatch)


def test_a_profile_says_what_it_measured_and_what_comes_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, config = tmp_path / "table", small_model(tmp_path)
    outcome = llmsim(capsys, "profile", "--model", config, "--device", "cpu", "-o", table, "--json")
    assert outcome.code == 0
    report = outcome.json()
    assert report["folder"] == str(table)
    assert report["num_timings"] > 20
    assert report["num_steps"] == 3
    assert report["source"].endswith("--device cpu --grid small --dtype fp32 --kernels auto --threads 1 --seed 0")
    assert f"table in {table}; next: llmsim calibrate fit {table} -o PROFILE\n" in outcome.err
    again = llmsim(capsys, "profile", "--model", config, "--device", "cpu", "-o", table)
    assert (again.code, again.err.count("\n")) == (2, 1)
    assert again.err.startswith(f"error: {table}: holds a finished profile; choose another folder, or --force")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--model", "tiney"], "error: model 'tiney' is unknown; choose "),
        (
            ["--model", "qwen3-30b-a3b"],
            "error: model: qwen3-30b-a3b: num_experts: 128 is not supported by the real engine",
        ),
        (["--model", "tiny", "--device", "tpu"], "error: --device: 'tpu' is unknown; choose auto, cpu, cuda, cuda:1 …"),
        (["--model", "tiny", "--threads", "0"], "error: Invalid value for '--threads': Input should be greater than"),
        ([], "error: Missing option '--model'."),
    ],
)
def test_a_mistake_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], says: str
) -> None:
    outcome = llmsim(capsys, "profile", "-o", tmp_path / "table", *options)
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert outcome.err.startswith(says)
    assert not (tmp_path / "table").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = llmsim(capsys, "profile", "--model", "tiny", "--device", "cuda", "-o", tmp_path / "table")
    assert (outcome.code, outcome.err.count("\n")) == (2, 1)
    assert " finds no GPU here; choose cpu" in outcome.err
