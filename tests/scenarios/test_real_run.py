"""Scenarios on the real engine, on this machine's CPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import llmsim
from llmsim.policies import guarding
from llmsim.policies.core.specs import GIB
from llmsim.scenarios import policy_watch
from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.loading import load_scenario
from llmsim.scenarios.real_options import Clock, Dtype, RealOptions
from llmsim.scenarios.replaying import replay

pytest.importorskip("torch")
from llmsim.real_engine.contract import StepFailed
from llmsim.real_engine.executor import RealExecutor
from llmsim.scenarios.real_setup import real_setup
from llmsim.tests.support.small_real_runs import run_small, write_small

SGLANG = "engine={preset: sglang, max_total_tokens: 400, context_length: 512, chunked_prefill_size: 64}"
SWAPPING = (
    "engine.swap_space_gib=0.01",
    "policies.preemption={name: newest, mode: swap}",
)
FAULTY = "llmsim.tests.support.faulty_policies"
CONTIGUOUS = ("engine.kv_reservation=contiguous", "engine.num_gpu_blocks_override=40")


@pytest.mark.parametrize(
    "overrides",
    [(), ("run.outputs=sampled",), (SGLANG,), SWAPPING, CONTIGUOUS, ("engine.async_scheduling=false",)],
    ids=["forced", "sampled", "sglang", "swap", "contiguous", "one-in-flight"],
)
def test_a_run_serves_all_and_its_journal_replays(tmp_path: Path, overrides: tuple[str, ...]) -> None:
    summary = run_small(tmp_path, *overrides, journal=True)
    assert summary["num_requests"]["finished"] == 16
    replayed = replay(tmp_path / "out")
    assert (replayed.difference, replayed.num_finished) == (None, 16)
    assert replayed.num_plans == summary["num_steps"]
    if overrides in ((), ("run.outputs=sampled",)):
        assert summary["num_preemptions"] > 0
        assert summary["prefix_hit_rate"] > 0.3
    if overrides == SWAPPING:
        assert summary["swaps"]["num_out"] > 0
        assert summary["swaps"]["copy_s"] is None


def test_a_summary_says_where_and_how_it_ran(tmp_path: Path) -> None:
    summary = run_small(tmp_path, "workload.requests=2")
    said = {key: summary[key] for key in ("engine", "device", "gpu", "kernels", "dtype", "weights", "clock", "outputs")}
    assert said == {
        **{"engine": "real", "device": "cpu", "gpu": "cpu", "kernels": "torch", "dtype": "fp32"},
        **{"weights": "random", "clock": "virtual", "outputs": "forced"},
    }
    assert summary["torch"]
    assert summary["interrupted"] is False
    assert summary["step_time_from"]["measured"] == 1
    assert summary["utilization"]["flops"] is None
    assert json.loads((tmp_path / "out" / "summary.json").read_text()) == summary


def test_requests_come_in_real_time_and_what_is_measured_is_whole(tmp_path: Path) -> None:
    run_small(tmp_path, "workload.requests=6", "workload.rate=50", clock=Clock.WALL, journal=True)
    result = llmsim.Result.open(tmp_path / "out")
    requests, steps = result.requests, result.steps
    assert (requests.first_scheduled_s >= requests.sent_s).all()
    assert (requests.first_token_s > requests.first_scheduled_s).all()
    assert (steps.duration_s > 0).all()
    assert (steps.start_s.diff().dropna() >= 0).all()
    assert steps.host_s.sum() > 0
    assert replay(tmp_path / "out").difference is None


def test_the_same_plans_come_of_the_same_journal_whichever_outputs_there_are(tmp_path: Path) -> None:
    """All at once, lengths and contents the workload's: nothing that is decided hangs on time or tokens."""
    digests = []
    for outputs in ("forced", "sampled"):
        folder = tmp_path / outputs
        folder.mkdir()
        run_small(folder, f"run.outputs={outputs}", "workload.rate=.inf", journal=True)
        digests.append(plans(folder / "out"))
    assert digests[0] == digests[1]


def test_a_simulated_run_of_requests_that_come_at_once_decides_the_same(tmp_path: Path) -> None:
    run_small(tmp_path, "workload.rate=.inf", journal=True)
    real = plans(tmp_path / "out")
    from llmsim.scenarios.assembly import assemble
    from llmsim.scenarios.run import run_into

    scenario = load_scenario(tmp_path / "s.yaml", ["workload.rate=.inf"])
    run_into(assemble(scenario), tmp_path / "sim", journal=True, warn=print)
    assert plans(tmp_path / "sim") == real


def plans(result: Path) -> list[str]:
    """The digests of a run's plans."""
    from llmsim.policies.core.journal import read_journal

    return [entry["digest"] for entry in read_journal(result / "journal.jsonl.gz") if entry.get("call") == "plan"]


def test_what_is_too_long_for_the_model_is_refused_as_in_the_simulator(tmp_path: Path) -> None:
    summary = run_small(tmp_path, "engine.max_model_len=140", "engine.num_gpu_blocks_override=40")
    simulated = llmsim.run(
        tmp_path / "s.yaml", ["engine.max_model_len=140", "engine.num_gpu_blocks_override=40"]
    ).summary
    assert summary["num_requests"] == simulated["num_requests"]
    assert summary["num_requests"]["refused"] > 0


@pytest.mark.parametrize("scheduling", ["fcfs", f"{FAULTY}:GoodScheduling"], ids=["house", "a user's"])
def test_a_step_that_fails_is_named_whoever_planned_it_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheduling: str
) -> None:
    launch, launched = RealExecutor.launch, []

    class Broken:
        def wait(self) -> Any:
            raise StepFailed("step 7: the model yielded numbers that are not finite")

    def failing(self: RealExecutor, plan: Any) -> Any:
        launched.append(plan)
        return Broken() if len(launched) > 30 else launch(self, plan)

    monkeypatch.setattr(RealExecutor, "launch", failing)
    with pytest.raises(ScenarioError, match=r"s\.yaml: engine: step 7: the model yielded numbers that are not finite"):
        run_small(tmp_path, f"policies.scheduling={{name: '{scheduling}'}}")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "s.yaml"]


def test_a_policy_that_hangs_is_broken_off_before_the_run_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarding, "LONGEST_CALL_S", 0.2)
    monkeypatch.setattr(policy_watch, "TICK_S", 0.05)
    with pytest.raises(ScenarioError, match=r"faulty_policies:Hangs: step 0: reorder had not come back after 0\.2 s$"):
        run_small(tmp_path, f"policies.scheduling={{name: '{FAULTY}:Hangs'}}")


def test_a_policy_that_asks_what_steps_cost_is_told_what_the_scenarios_hardware_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_small(tmp_path, "policies.chunk_size={name: itl_target, itl_s: 0.01}", journal=True)
    assert "'itl_target' goes by predicted step times, those of h200-sxm" in capsys.readouterr().out
    assert replay(tmp_path / "out").difference is None


def test_memory_is_that_of_the_device_and_numbers_are_as_wide_as_there(tmp_path: Path) -> None:
    scenario = load_scenario(write_small(tmp_path), ["engine.num_gpu_blocks_override=null"])
    setups = {
        dtype: real_setup(scenario, RealOptions(device="cpu", dtype=dtype, device_memory_gib=0.5), print)
        for dtype in (Dtype.AUTO, Dtype.FP32, Dtype.BF16)
    }
    budgets = {dtype: setup.assembly.budget for dtype, setup in setups.items()}
    assert budgets[Dtype.AUTO] == budgets[Dtype.FP32]
    assert budgets[Dtype.FP32].kv_bytes_per_token == 2 * budgets[Dtype.BF16].kv_bytes_per_token == 2 * 64 * 4
    assert budgets[Dtype.FP32].memory_bytes == GIB // 2
    assert budgets[Dtype.FP32].num_blocks < budgets[Dtype.BF16].num_blocks
    assert setups[Dtype.BF16].assembly.gpu.name == "cpu"


def test_a_notebook_runs_it_too(tmp_path: Path) -> None:
    result = llmsim.run(write_small(tmp_path), ["workload.requests=2"], real=RealOptions(device="cpu"))
    assert result.summary["engine"] == "real"
    assert len(result.requests) == 2
    with pytest.raises(ValueError, match="'sundial' is not a valid Clock"):
        RealOptions(clock="sundial")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="device_memory_gib: inf is out of range"):
        RealOptions(device_memory_gib=float("inf"))
