"""A warm run on the real engine: the pass before it is served there too, and all else is as in the simulator."""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import nullcontext
from pathlib import Path

import pytest

from llmsim.policies.core.engine import EngineCore
from llmsim.policies.core.journal import read_journal
from llmsim.scenarios.api import Result
from llmsim.scenarios.assembly import assemble
from llmsim.scenarios.loading import load_scenario
from llmsim.scenarios.real_options import Clock, RealOptions
from llmsim.scenarios.recording import JOURNAL
from llmsim.scenarios.replaying import replay
from llmsim.scenarios.run import run_into

pytest.importorskip("torch")
from llmsim.scenarios.real_run import run_for_real
from llmsim.scenarios.real_setup import real_setup
from llmsim.tests.support.small_real_runs import run_small, write_small

WARM = "run.cache=warm"
SGLANG = "engine={preset: sglang, max_total_tokens: 400, context_length: 512, chunked_prefill_size: 64}"
AT_ONCE = "workload.rate=.inf"
KINDS = {
    "forced": (),
    "sampled": ("run.outputs=sampled",),
    "sglang": (SGLANG,),
    "sglang sampled": (SGLANG, "run.outputs=sampled"),
    "swap": ("engine.swap_space_gib=0.01", "policies.preemption={name: newest, mode: swap}"),
    "one in flight": ("engine.async_scheduling=false",),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_decided_is_what_the_simulator_decides_and_the_journal_replays(tmp_path: Path, kind: str) -> None:
    """All at once, so that nothing hangs on time."""
    overrides = (WARM, AT_ONCE, *KINDS[kind])
    real = run_small(tmp_path, *overrides, journal=True)
    scenario = load_scenario(tmp_path / "s.yaml", overrides)
    simulated = run_into(assemble(scenario), tmp_path / "sim", journal=True, warn=print)
    assert digests(tmp_path / "out") == digests(tmp_path / "sim")
    same = ("cache", "cached_blocks_at_start", "prefix_hit_rate", "num_requests", "num_steps", "num_preemptions")
    assert [real[key] for key in same] == [simulated[key] for key in same]
    assert (real["cache"], real["num_requests"]["finished"]) == ("warm", 16)
    assert 0 < real["cached_blocks_at_start"] <= real["usable_blocks"]
    replayed = replay(tmp_path / "out")
    assert (replayed.difference, replayed.num_plans) == (None, real["num_steps"])


def digests(result: Path) -> list[str]:
    """What the journal holds of plans, the pass before the run first."""
    entries = [entry.get("entry", entry) for entry in read_journal(result / JOURNAL)]
    return [entry["digest"] for entry in entries if entry.get("call") == "plan"]


@pytest.mark.parametrize("clock", Clock)
@pytest.mark.parametrize("engine", ["engine.num_gpu_blocks_override=400", SGLANG.replace("400", "4000")])
def test_with_room_for_all_a_warm_run_hits_as_much_as_the_simulators(tmp_path: Path, clock: Clock, engine: str) -> None:
    overrides = (WARM, engine, "workload.rate=100", "run.warmup_s=0.02")
    real = run_small(tmp_path, *overrides, clock=clock, journal=True)
    simulated = run_into(assemble(load_scenario(tmp_path / "s.yaml", overrides)), tmp_path / "sim", warn=print)
    same = ("prefix_hit_rate", "cached_blocks_at_start", "num_requests", "num_warmup_requests")
    assert [real[key] for key in same] == [simulated[key] for key in same]
    assert real["prefix_hit_rate"] > 0.9
    assert 0 < real["num_warmup_requests"] < 16
    assert replay(tmp_path / "out").difference is None


@pytest.mark.parametrize("clock", Clock)
def test_clock_and_records_begin_anew(tmp_path: Path, clock: Clock) -> None:
    run_small(tmp_path, WARM, "workload.rate=100", clock=clock)
    result = Result.open(tmp_path / "out")
    assert sorted(result.requests.request_id) == sorted(set(result.requests.request_id))
    assert len(result.requests) == 16
    assert result.steps.step.tolist() == list(range(len(result.steps)))
    sent = result.requests.sent_s.min()
    assert sent < result.steps.start_s[0]
    if clock == Clock.VIRTUAL:  # which does not count how long the machine was busy with something else
        assert result.steps.start_s[0] < sent + result.requests.sent_s.max()
        assert result.steps.num_waiting[0] == 0


def test_what_the_clock_on_the_wall_shows_has_passed_since_the_pass_before(tmp_path: Path) -> None:
    """However slow the machine is."""
    setup = real_setup(load_scenario(write_small(tmp_path), [WARM, "workload.rate=50"]), RealOptions("cpu"), print)
    lingered_until: list[float] = []

    def linger(now_ns: int, num_ended: int) -> None:
        if not lingered_until:  # progress is told every 0.1 s, and the pass before lasts longer
            time.sleep(0.5)
            lingered_until.append(time.monotonic())

    run_for_real(setup, tmp_path / "out", warn=print, on_progress=linger)
    passed_s = time.monotonic() - lingered_until[0]
    steps = Result.open(tmp_path / "out").steps
    assert 0 < (steps.start_s + steps.duration_s).max() < passed_s


def test_clients_that_give_up_are_served_twice_too(tmp_path: Path) -> None:
    impatient = ("run.outputs=sampled", "workload.timeout_s=0.02", "workload.retries=1", "workload.backoff_s=0.05")
    summary = run_small(tmp_path, WARM, *impatient, clock=Clock.WALL, journal=True)
    assert sum(summary["num_requests"].values()) >= 16
    assert replay(tmp_path / "out").difference is None


@pytest.mark.skipif(os.name == "nt", reason="raises SIGINT")
@pytest.mark.parametrize("is_before", [True, False], ids=["before", "in the run"])
def test_ctrl_c_before_a_warm_run_leaves_nothing_and_in_it_what_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_before: bool
) -> None:
    scenario = load_scenario(write_small(tmp_path), [WARM, "workload.rate=20"])
    setup = real_setup(scenario, RealOptions(device="cpu"), print)
    take_over, in_run, pressed = EngineCore.take_over_cache, list[EngineCore](), list[int]()

    def taking_over(core: EngineCore, before: EngineCore) -> None:
        take_over(core, before)
        in_run.append(core)

    def press(now_ns: int, num_ended: int) -> None:
        if not pressed and (is_before or in_run):
            pressed.append(now_ns)
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(EngineCore, "take_over_cache", taking_over)
    with pytest.raises(KeyboardInterrupt) if is_before else nullcontext():
        summary = run_for_real(setup, tmp_path / "out", journal=True, warn=print, on_progress=press)
        assert summary["interrupted"]
        assert summary["num_requests"]["finished"] < 16
        assert json.loads((tmp_path / "out" / "summary.json").read_text()) == summary
        assert replay(tmp_path / "out").difference is None
    assert len(pressed) == 1
    assert bool(in_run) != is_before
    left = {"config.json", "s.yaml"} | (set() if is_before else {"out"})
    assert {path.name for path in tmp_path.iterdir()} == left
