"""A device is timed into a table that is fitted, priced by, and gone on with after a kill."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest
import torch

from llmsim.calibrate.fit import checked, fit
from llmsim.calibrate.whole_steps import read_steps
from llmsim.calibrate.writing import write_profile
from llmsim.policies.core.estimator import StepShape
from llmsim.real_engine.profiler import grids, session
from llmsim.real_engine.profiler.bench import StepBench
from llmsim.real_engine.profiler.steps import TimedStep
from llmsim.scenarios.assembly import assemble
from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.loading import load_scenario
from llmsim.scenarios.run import run_into
from llmsim.scenarios.studies import profile_device
from llmsim.scenarios.studies.interrupted import StudyInterrupted
from llmsim.scenarios.studies.profile_device import SHORT_VISITS
from llmsim.sim.cost_model.profile import read_table
from llmsim.tests.support.profiling import GRID, be_quick, small_model, study_in
from llmsim.tests.support.scenario_files import write_scenario

SCENARIO = """
name: as-profiled
model: ./config.json
hardware: {profile: profile}
engine: {dtype: float32, num_gpu_blocks_override: 100, max_num_seqs: 4, max_num_batched_tokens: 32, max_model_len: 96}
workload: {type: independent, rate: 100, requests: 6, prompt_tokens: 40, output_tokens: 8}
"""


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    be_quick(monkeypatch)


def nothing() -> None:
    """Nobody watches."""


def stopped_after(visits: int) -> Callable[[], None]:
    """Somebody who presses Ctrl-C after so many."""
    left = iter(range(visits))

    def advance() -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt

    return advance


def test_a_profile_is_a_table_that_fit_takes_and_scenarios_are_priced_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(grids.GRIDS, "small", GRID)
    monkeypatch.setattr(profile_device, "VISITS", 1)
    monkeypatch.setattr(profile_device, "SHORT_VISITS", 1)
    profiled = study_in(tmp_path).run(nothing)
    table, steps = read_table(tmp_path / "table"), read_steps(tmp_path / "table")
    assert profiled.num_timings == len(checked(table))
    in_common = [step for step in steps if step.shape.shared_tokens]
    assert len(steps) == profiled.num_steps == 3 * GRID.num_whole + len(in_common)
    assert len(in_common) > 1
    assert {timing.repeats for timing in table.timings} & {0, None} == set()
    header = table.header
    assert (header.kv_dtype_bytes, header.model.dtype, header.threads) == (4, "fp32", 1)
    assert (header.attention.launches, header.graph_sizes, header.out_of_memory) == ("separate", (), ())
    assert header.logits == "sampled"
    fitted = fit(table, steps=steps)
    write_profile(tmp_path / "profile", fitted.header, fitted.timings)
    assert set(fitted.header.fit.whole_steps) == {"decode", "prefill", "mixed"}  # type: ignore[union-attr]
    warnings: list[str] = []
    for gpu in ([], [f"hardware.gpu={tmp_path / 'profile' / 'device.yaml'}"]):
        assembly = assemble(load_scenario(write_scenario(tmp_path, SCENARIO), gpu))
        mixed = assembly.cost_model().step_cost(StepShape([(8, 16), (12, 3)], 2, 70, 40, 4))
        assert not mixed.extrapolated
        summary = run_into(assembly, tmp_path / f"out{len(gpu)}", force=False, journal=False, warn=warnings.append)
        assert summary["priced_by"] == "profile"
        assert summary["step_time_from"]["data_sheet"] == 0


def test_a_killed_profile_goes_on_where_it_was(tmp_path: Path) -> None:
    study = study_in(tmp_path)
    total = study.num_visits
    with pytest.raises(StudyInterrupted, match=rf"^interrupted; 11 of {total} visits are kept in .* goes on"):
        study.run(stopped_after(10))
    points = tmp_path / "table" / "points.jsonl"
    kept = points.read_bytes()
    points.write_bytes(kept + b'{"step": "d1x16", "vis')  # as a kill in the middle of writing leaves it
    again = study_in(tmp_path)
    assert again.num_done == 11
    visits = 0

    def count() -> None:
        nonlocal visits
        visits += 1

    again.run(count)
    assert visits == total - 11
    assert points.read_bytes().startswith(kept)
    assert read_table(tmp_path / "table").timings


def test_points_of_something_else_are_not_gone_on_with(tmp_path: Path) -> None:
    with pytest.raises(StudyInterrupted):
        study_in(tmp_path).run(stopped_after(0))
    says = "holds an unfinished profile whose dtype is 'fp32', not 'bf16'; choose another folder, or --force"
    with pytest.raises(ScenarioError, match=says):
        study_in(tmp_path, dtype="bf16")
    (tmp_path / "table" / "notes.txt").write_text("mine")
    assert study_in(tmp_path, dtype="bf16", force=True).num_done == 0
    assert (tmp_path / "table" / "notes.txt").read_text() == "mine"


def test_a_finished_profile_and_other_folders_are_left_alone(tmp_path: Path) -> None:
    study_in(tmp_path).run(nothing)
    with pytest.raises(ScenarioError, match="table: holds a finished profile; choose another folder, or --force to"):
        study_in(tmp_path)
    (tmp_path / "table" / "points.jsonl").unlink()
    for force in (False, True):
        with pytest.raises(ScenarioError, match="table: holds something else than a profile; choose another folder"):
            study_in(tmp_path, force=force)


def test_a_step_that_runs_out_of_memory_is_recorded_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare = StepBench.prepare

    def out_of_memory(bench: StepBench, step: TimedStep) -> None:
        if step.name() == "c32@64":
            raise torch.OutOfMemoryError("CUDA out of memory")
        prepare(bench, step)

    monkeypatch.setattr(StepBench, "prepare", out_of_memory)
    study = study_in(tmp_path)
    profiled = study.run(nothing)
    assert profiled.header.out_of_memory == ("c32@64",)
    assert (32, 64) not in {timing.shape[:2] for timing in checked(read_table(tmp_path / "table"))}
    assert len([line for line in study.points.lines if "visit" in line]) == study.num_visits - SHORT_VISITS


def test_steps_beyond_the_free_memory_are_not_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = study_in(tmp_path)
    found = replace(session.find_device("cpu"), free_bytes=60_000)
    monkeypatch.setattr(session, "find_device", lambda _: found)
    profiled = study.run(nothing)
    assert "d3x16" not in profiled.header.out_of_memory
    assert "d1x96" in profiled.header.out_of_memory


def test_other_errors_of_a_step_are_not_taken_for_a_lack_of_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> NoReturn:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(StepBench, "prepare", broken)
    with pytest.raises(ScenarioError, match=r"^--device: step .*: RuntimeError: CUDA error: an illegal memory access"):
        study_in(tmp_path).run(nothing)


def test_what_cannot_be_profiled_is_one_line_and_leaves_no_folder(tmp_path: Path) -> None:
    (tmp_path / "odd").mkdir()
    odd = small_model(tmp_path / "odd")
    odd.write_text(odd.read_text().replace("LlamaForCausalLM", "Gemma2ForCausalLM"))
    for others, says in (
        ({"model": str(odd)}, "is not supported; choose one of"),
        ({"device": "cuda"}, "--device: torch .* finds no GPU here; choose cpu"),
        ({"kernels": "triton"}, "the device is cpu, and triton compiles for GPUs"),
    ):
        if others.get("device") == "cuda" and torch.cuda.is_available():
            continue
        with pytest.raises(ScenarioError, match=says):
            study_in(tmp_path, **others)
        assert not (tmp_path / "table").exists()
