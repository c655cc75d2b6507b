"""A warm run begins with what a pass of the same traffic left in the cache, and with nothing else of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

import llmsim
from llmsim.policies.core.engine import EngineCore
from llmsim.policies.core.journal import JournalError, read_journal
from llmsim.policies.core.plan import StepPlan
from llmsim.policies.core.replay import Replay
from llmsim.scenarios.assembly import assemble
from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.loading import load_scenario
from llmsim.scenarios.recording import JOURNAL
from llmsim.scenarios.replaying import replay
from llmsim.scenarios.run import run_into
from llmsim.scenarios.warm_cache import warm_up
from llmsim.scenarios.workloads.building import build_workload
from llmsim.tests.support.command_line import contents
from llmsim.tests.support.command_line import llmsim as command
from llmsim.tests.support.generators import SMALL, scenario_with
from llmsim.tests.support.scenario_files import BUSY, write_scenario

WARM = {"run.cache": "warm"}


def both(stated: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The summaries of a cold run and of a warm one."""
    cold, warm = (llmsim.run(stated, {"run.cache": cache}).summary for cache in ("cold", "warm"))
    assert (cold["cache"], cold["cached_blocks_at_start"], warm["cache"]) == ("cold", 0, "warm")
    assert 0 < warm["cached_blocks_at_start"] <= warm["usable_blocks"]
    return cold, warm


FEW: dict[str, dict[str, int]] = {"multi_turn": {"sessions": 15}, "generated_shared_prefix": {"prompts_per_group": 4}}


@pytest.mark.parametrize("kind", sorted(SMALL))
def test_every_generators_traffic_is_hit_more_often(kind: str) -> None:
    small = scenario_with(kind, **FEW.get(kind, {"requests": 60}))
    cold, warm = both(small.model_dump(mode="json", exclude_unset=True))
    assert warm["num_requests"] == cold["num_requests"]
    assert warm["prefix_hit_rate"] > cold["prefix_hit_rate"]


@pytest.mark.parametrize(
    "pace", [{"concurrency": 4}, {"rate": 50, "max_concurrency": 4}, {"rate": 2000, "timeout_s": 0.02, "retries": 2}]
)
def test_closed_loops_and_clients_that_give_up_are_served_twice_too(pace: dict[str, Any]) -> None:
    small = scenario_with("agent", requests=80, **pace).model_dump(mode="json", exclude_unset=True)
    cold, warm = both(small)
    assert warm["prefix_hit_rate"] > cold["prefix_hit_rate"]
    assert warm["closed_loop"] == cold["closed_loop"] == ("timeout_s" not in pace)
    assert sum(warm["num_requests"].values()) >= 80


def test_traces_and_sessions_of_traces_are_played_twice(tmp_path: Path) -> None:
    rows = [{"timestamp": i, "input_length": 96, "output_length": 9, "hash_ids": [i, *range(5)]} for i in range(50)]
    turns = [{"from": ("human", "gpt")[turn % 2], "value": f"{turn} words " * 40} for turn in range(6)]
    (tmp_path / "rows").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "talks").write_text(json.dumps([{"id": f"c{i}", "conversations": turns} for i in range(20)]))
    plain: dict[str, Any] = {"name": "s", "model": "tiny", "hardware": {"gpu": "h100-sxm"}}
    for form, name, pace in (("hash_ids", "rows", {}), ("sharegpt", "talks", {"rate": 20})):
        workload = {"type": "trace", "format": form, "path": str(tmp_path / name), **pace}
        with pytest.warns(UserWarning, match="estimate") if form == "sharegpt" else nullcontext():
            cold, warm = both({**plain, "workload": workload})
        assert warm["num_requests"] == cold["num_requests"]
        assert warm["prefix_hit_rate"] > cold["prefix_hit_rate"]


def test_with_room_for_everything_all_but_the_last_token_of_each_prompt_is_hit() -> None:
    result = llmsim.run(scenario_with("independent").model_dump(mode="json", exclude_unset=True), WARM)
    requests = result.requests
    assert (requests.cached_tokens == (requests.prompt_tokens - 1) // 16 * 16).all()


def test_clock_queue_and_steps_begin_anew_and_equal_runs_are_equal_bytes(tmp_path: Path) -> None:
    path = write_scenario(tmp_path, BUSY)
    cold = llmsim.run(path)
    warm, again = (llmsim.run(path, WARM, output=tmp_path / name) for name in ("a", "b"))
    assert contents(warm.folder) == contents(again.folder)
    sent = [result.requests.set_index("request_id").sent_s.sort_index() for result in (cold, warm)]
    assert sent[0].equals(sent[1])
    assert warm.steps.step.tolist() == list(range(len(warm.steps)))
    assert (warm.steps.start_s[0], warm.steps.num_waiting[0]) == (cold.steps.start_s[0], cold.steps.num_waiting[0])
    assert warm.summary["prefix_hit_rate"] > cold.summary["prefix_hit_rate"]
    assert warm.summary["cached_blocks_at_start"] <= 399


def test_a_cache_taken_over_is_whole() -> None:
    assembly = assemble(scenario_with("agent"))
    core = assembly.core()
    num_cached = warm_up(core, assembly, build_workload(assembly.scenario, print), assembly.cost_model())
    core.check_integrity()
    assert num_cached == core.kv_cache.index.num_evictable > 0
    assert core.num_free_blocks == assembly.config.num_blocks - 1
    assert (core.num_steps, core.now_ns, core.num_waiting, core.num_running) == (0, 0, 0, 0)


def test_an_automatic_warm_up_is_found_in_a_warm_run(tmp_path: Path) -> None:
    """A cold run's begins with all contexts to be computed; a warm one has little to cut."""
    path = write_scenario(tmp_path, BUSY)
    long = {"workload.requests": 500, "workload.rate": 60, "workload.repository_tokens": 4000, "engine": {}}
    cold, warm = (
        llmsim.run(path, {**long, "run.warmup_s": "auto", "run.cache": cache}).scenario["run"]["warmup_s"]
        for cache in ("cold", "warm")
    )
    assert warm < cold


def test_sweeps_can_be_warm(tmp_path: Path) -> None:
    path = write_scenario(tmp_path, BUSY)
    frame = llmsim.sweep(path, {"run.cache": ["cold", "warm"]}, jobs=1)
    assert frame["prefix_hit_rate"].is_monotonic_increasing
    assert frame["cached_blocks_at_start"].tolist() == [0, llmsim.run(path, WARM).summary["cached_blocks_at_start"]]


def test_a_radix_tree_is_taken_over_too(tmp_path: Path) -> None:
    sglang = {"engine": {"preset": "sglang", "max_total_tokens": 6400}, "policies": {}}
    path = write_scenario(tmp_path, BUSY)
    cold, warm = (llmsim.run(path, {**sglang, "run.cache": cache}).summary for cache in ("cold", "warm"))
    assert warm["prefix_hit_rate"] > cold["prefix_hit_rate"]
    assert warm["cached_blocks_at_start"] > 0
    with pytest.raises(ScenarioError, match=r"engine\.disable_radix_cache: true"):
        llmsim.run(path, {**sglang, "engine.disable_radix_cache": True, **WARM})


def test_warm_without_a_prefix_cache_names_both_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_scenario(tmp_path, BUSY)
    sets = ["--set", "run.cache=warm", "--set", "engine.enable_prefix_caching=false"]
    for name in ("run", "check", "describe"):
        done = command(capsys, name, path, *sets)
        assert (done.code, done.out) == (2, "")
        assert done.err == (
            f"error: {path}: run.cache: 'warm' needs a prefix cache, "
            "which engine.enable_prefix_caching: false switches off\n"
        )


ASKING = {"policies.chunk_size": {"name": "itl_target", "itl_s": 0.01}}


@pytest.mark.parametrize(
    "overrides", [{}, ASKING, {"policies.eviction": {"name": "random"}}], ids=["vllm", "estimates", "random eviction"]
)
def test_the_journal_of_a_warm_run_holds_the_pass_before_it_and_replays(
    tmp_path: Path, overrides: dict[str, Any]
) -> None:
    path = write_scenario(tmp_path, BUSY)
    stated = [f"{key}={json.dumps(value)}" for key, value in {**overrides, **WARM}.items()]
    assembly = assemble(load_scenario(path, stated))
    plain = run_into(assembly, tmp_path / "plain", warn=print)
    kept = run_into(assembly, tmp_path / "kept", journal=True, warn=print)
    assert plain == kept
    shown: list[int] = []
    replayed = replay(tmp_path / "kept", on_plan=lambda plan: shown.append(plan.step))
    assert (replayed.difference, replayed.num_plans) == (None, kept["num_steps"])
    assert shown == list(range(kept["num_steps"]))


def test_each_core_of_a_replay_is_watched_while_its_calls_come(tmp_path: Path) -> None:
    """What the run's core is asked to do is none of the watch over the pass before it."""
    assembly = assemble(load_scenario(write_scenario(tmp_path, BUSY), ["run.cache=warm"]))
    run_into(assembly, tmp_path / "r", journal=True, warn=print)
    seen: list[tuple[EngineCore, str]] = []

    @contextmanager
    def watched(core: EngineCore) -> Iterator[None]:
        seen.append((core, "begins"))
        try:
            yield
        except KeyError as error:
            seen.append((core, str(error)))
            raise
        seen.append((core, "ends"))

    def stop(plan: StepPlan) -> None:
        raise KeyError(plan.step)

    replay = Replay(read_journal(tmp_path / "r" / JOURNAL), on_plan=stop, watched=watched)
    with pytest.raises(KeyError):
        replay.run()
    before = seen[0][0]
    assert before is not replay.core
    assert seen == [(before, "begins"), (before, "ends"), (replay.core, "begins"), (replay.core, "0")]


def test_a_pass_before_that_was_tampered_with_is_found(tmp_path: Path) -> None:
    assembly = assemble(load_scenario(write_scenario(tmp_path, BUSY), ["run.cache=warm"]))
    run_into(assembly, tmp_path / "r", journal=True, warn=print)
    entries = list(read_journal(tmp_path / "r" / JOURNAL))
    calls = [entry.get("call") for entry in entries]
    end = calls.index("take_over")
    assert set(calls[1:end]) == {"before"}
    assert "before" not in calls[end:]
    cut = [entry for at, entry in enumerate(entries) if not 0 < at < end]
    assert Replay(iter(cut)).run() == "line 2: a cache is taken over that is none, or is in use"
    cold = [entry for at, entry in enumerate(entries) if not 0 < at <= end]
    assert " differs: " in (Replay(iter(cold)).run() or "")
    plan = next(at for at, entry in enumerate(entries) if entry.get("entry", {}).get("call") == "plan")
    entries[plan]["entry"]["digest"] = "0"
    assert (Replay(iter(entries)).run() or "").startswith(f"line {plan + 1}: step 0 differs: ")
    entries[plan]["entry"] = {"call": "take_over"}
    with pytest.raises(JournalError, match=f"line {plan + 1}: malformed entry"):
        Replay(iter(entries)).run()


def test_the_summary_and_its_headline_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_scenario(tmp_path, BUSY)
    done = command(capsys, "run", path, "--set", "run.cache=warm", "-o", tmp_path / "r", "--json")
    assert "warm cache" in done.err
    assert done.json()["cache"] == "warm"
    assert "warm cache" not in command(capsys, "run", path, "-o", tmp_path / "s").err
    assert "served before" in command(capsys, "describe", path, "--set", "run.cache=warm").err


def test_another_cache_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"run\.cache: "):
        load_scenario(write_scenario(tmp_path, BUSY), ["run.cache=hot"])
