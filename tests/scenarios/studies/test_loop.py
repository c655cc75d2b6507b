"""The whole loop on this machine's CPU, small: profile, runs, simulation, report; and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from llmsim.calibrate.loop.verdicts import METRICS, STATISTICS
from llmsim.calibrate.writing import write_profile
from llmsim.real_engine.profiler import grids
from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.loading import load_scenario
from llmsim.scenarios.real_options import Clock, RealOptions
from llmsim.scenarios.studies import loop_twin
from llmsim.scenarios.studies.interrupted import StudyInterrupted
from llmsim.scenarios.studies.loop import Loop, LoopStudy, LoopWishes
from llmsim.scenarios.studies.loop_policies import read_variants
from llmsim.scenarios.studies.loop_report import loop_failures, write_report
from llmsim.sim.cost_model.profile import read_table
from llmsim.sim.cost_model.profile_header import ProfileHeader
from llmsim.tests.support.command_line import llmsim
from llmsim.tests.support.profiling import GRID, be_quick
from llmsim.tests.support.small_real_runs import write_small

pytestmark = pytest.mark.slow

VARIANTS = """
fcfs:
shortest: {policies.scheduling: {name: shortest_prompt_first}}
chunks: {policies.chunk_size: {name: fixed, tokens: 16}}
itl_target: {policies.chunk_size: {name: itl_target, itl_s: 0.002}}
lpm: {engine: {preset: sglang, chunked_prefill_size: 64, max_running_requests: 8, max_total_tokens: 384,
               context_length: 512, schedule_policy: lpm}}
"""
OPTIONS = RealOptions("cpu", clock=Clock.VIRTUAL, threads=1)


def wishes(folder: Path, *overrides: str, **others: Any) -> LoopWishes:
    return LoopWishes(load_scenario(folder / "s.yaml", overrides), OPTIONS, **others)


def study(folder: Path, *overrides: str, into: str = "loop", **others: Any) -> LoopStudy:
    return LoopStudy(wishes(folder, *overrides, **others), folder / into, lambda _: None, lambda _: None)


def unwatched(left: int) -> None:
    """Nobody watches the profile."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Scenario, variants, and a loop that is done."""
    made = tmp_path_factory.mktemp("loop")
    write_small(made)
    (made / "variants.yaml").write_text(VARIANTS)
    with pytest.MonkeyPatch.context() as patch:
        be_quick(patch)
        patch.setitem(grids.GRIDS, "small", replace(GRID, batches=(1, 2, 4, 8)))
        write_report(study(made, policies=read_variants(made / "variants.yaml")).run(unwatched))
        yield made


@pytest.fixture(scope="module")
def figures(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "loop" / "loop.json").read_text())
    return found


def test_journals_replay_and_the_traffic_has_all_that_is_to_be_predicted(figures: dict[str, Any]) -> None:
    assert [found["difference"] for found in figures["replays"].values()] == [None, None]
    assert figures["correction"]["replay_difference"] is None
    assert figures["traffic"]["num_requests"] == 16
    assert min(figures["traffic"]["num_preemptions"]) > 0
    assert min(figures["traffic"]["prefix_hit_rate"]) > 0.2
    assert {"decode", "mixed"} <= figures["steps"].keys()
    assert figures["pace"].keys() == {"real-1", "real-2"}
    assert all(pace["fastest"] <= pace["whole"] <= pace["slowest"] for pace in figures["pace"].values())


def test_every_latency_has_an_error_a_noise_and_a_verdict_and_none_is_absurd(figures: dict[str, Any]) -> None:
    assert figures["latencies"].keys() == set(METRICS)
    for rows in figures["latencies"].values():
        assert rows.keys() == set(STATISTICS)
        for row in rows.values():
            assert row["verdict"] in ("within", "beyond", "inconclusive")
            assert row["noise"] >= 0
            assert -0.8 < row["error"] < 4.0
    assert sum(figures["verdicts"].values()) == 16
    for row in figures["steps"].values():
        assert -0.8 < row["bias"] < 4.0


def test_both_engines_run_with_the_same_blocks(folder: Path, figures: dict[str, Any]) -> None:
    blocks = {
        name: json.loads((folder / "loop" / name / "summary.json").read_text())["usable_blocks"]
        for name in ("real-1", "real-2", "simulated", "other")
    }
    assert set(blocks.values()) == {figures["runs_on"]["usable_blocks"]} == {23}


def test_decisions_that_differ_are_named_by_step_and_part(figures: dict[str, Any]) -> None:
    for found in (figures["divergence"], figures["divergence_of_repeats"]):
        assert found["step"] is None or found["differs"]
        assert found["step"] is None or 0 <= found["step"] <= found["num_steps"]


def test_policies_are_ranked_over_differences_beyond_the_noise(figures: dict[str, Any]) -> None:
    policies = figures["policies"]
    assert policies["num_pairs"] == 5 * 10
    assert 0 <= policies["num_agreeing"] <= policies["num_beyond_noise"] <= policies["num_pairs"]
    assert len(policies["disagreeing"]) == policies["num_beyond_noise"] - policies["num_agreeing"]
    assert policies["ranked"][0]["measured"].keys() == {"fcfs", "shortest", "chunks", "itl_target", "lpm"}


def test_the_report_shows_the_figures_with_pictures(folder: Path, figures: dict[str, Any]) -> None:
    text = (folder / "loop" / "report.md").read_text()
    for part in (
        "## Latencies",
        "## Steps",
        "## Decisions",
        "## A correction",
        "## Policies",
        "processor time of",
        "own pace",
    ):
        assert part in text
    for name in ("latencies.png", "steps.png", "policies.png"):
        assert f"]({name})" in text
        assert (folder / "loop" / name).read_bytes().startswith(b"\x89PNG")
    assert text.count("identical") == 2


def test_the_same_command_finds_all_that_is_done(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_twin, "run_for_real", None)  # nothing is run again
    command = ("calibrate", "loop", folder / "s.yaml", "--device", "cpu", "-o", folder / "loop", "--json")
    outcome = llmsim(capsys, *command)
    assert outcome.code == 0, outcome.err
    assert outcome.json()["latencies"] == json.loads((folder / "loop" / "loop.json").read_text())["latencies"]
    assert "real-1: on the device, there already" in outcome.err
    beyond = loop_failures(outcome.json())[1]
    assert llmsim(capsys, *command[:-1], "--check").code == bool(beyond)


def test_a_loop_that_is_broken_off_goes_on_where_it_was(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, carried = study(folder, into="again", profile=folder / "loop" / "profile"), loop_twin.run_for_real

    def stopped(setup: Any, target: Path, **options: Any) -> Any:
        if target.name == "real-2":
            raise KeyboardInterrupt
        return carried(setup, target, **options)

    monkeypatch.setattr(loop_twin, "run_for_real", stopped)
    with pytest.raises(StudyInterrupted, match="interrupted; what is done is kept in "):
        begun.run(unwatched)
    assert {path.name for path in (folder / "again").iterdir()} == {"begun.json", "real-1"}
    first = (folder / "again" / "real-1" / "summary.json").read_bytes()
    monkeypatch.setattr(loop_twin, "run_for_real", carried)
    done = study(folder, into="again", profile=folder / "loop" / "profile").run(unwatched)
    assert isinstance(done, Loop)
    assert (folder / "again" / "real-1" / "summary.json").read_bytes() == first


def test_a_folder_of_another_loop_is_refused(folder: Path) -> None:
    with pytest.raises(ScenarioError, match="holds a loop of another scenario; choose another"):
        study(folder, "workload.requests=12")
    (folder / "mine").mkdir()
    (folder / "mine" / "notes.txt").write_text("")
    with pytest.raises(ScenarioError, match="mine: exists and is not a loop's folder; choose another one"):
        study(folder, into="mine")


def test_another_grid_or_a_variant_changed_since_is_refused(folder: Path) -> None:
    with pytest.raises(ScenarioError, match='holds a loop whose grid is "small", not "full"; choose another'):
        study(folder, grid="full")
    changed = {**read_variants(folder / "variants.yaml"), "chunks": {"policies.chunk_size": {"name": "unlimited"}}}
    with pytest.raises(ScenarioError, match="holds runs of another policy 'chunks'; give this one a new name"):
        study(folder, policies=changed)
    more = {"more": {}, "inf": {"workload.rate": float("inf")}}
    study(folder, policies={**read_variants(folder / "variants.yaml"), **more})
    changed_before_it_ran = {"more": {"workload.rate": 3}, "inf": more["inf"]}
    study(folder, policies={**read_variants(folder / "variants.yaml"), **changed_before_it_ran})


def edited(folder: Path, name: str, **changes: Any) -> Path:
    """The loop's profile with another header."""
    read = read_table(folder / "loop" / "profile")
    write_profile(folder / name, ProfileHeader(**{**read.header.model_dump(), **changes}), read.timings)
    return folder / name


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"device": "Cray-1"}, "its device is Cray-1, the run's "),
        ({"software": "llmsim 0.0.1, torch 1.0"}, "its software is llmsim 0.0.1, torch 1.0, the run's llmsim "),
        ({"threads": 8}, "its number of threads is 8, the run's 1"),
        ({"model": {"hidden_size": 4096}}, "its hidden_size is 4096, that of ./config.json 64"),
    ],
)
def test_a_profile_of_something_else_is_refused_unless_forced_and_then_told(
    folder: Path, changes: dict[str, Any], says: str
) -> None:
    if "model" in changes:
        changes = {"model": {**read_table(folder / "loop" / "profile").header.model.model_dump(), **changes["model"]}}
    name = f"other-{next(iter(changes))}"
    profile = edited(folder, name, **changes)
    with pytest.raises(ScenarioError) as refused:
        study(folder, into=f"of-{name}", profile=profile)
    assert says in str(refused.value)
    assert str(refused.value).endswith("measure again, or --force")
    assert not (folder / f"of-{name}").exists()
    if "device" in changes:
        forced = study(folder, into=f"of-{name}", profile=profile, force=True, repeats=1).run(unwatched)
        write_report(forced)
        text = (folder / f"of-{name}" / "report.md").read_text()
        assert f"**Forced:** the profile is not of this run: {says}" in text
        assert forced.figures["verdicts"]["inconclusive"] == 16  # of one run alone no noise is known


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: {}", "holds fewer than two policies, so there is nothing to rank"),
        ("a: {}\n../b: {}", "names a folder: letters, digits, - _ and . alone"),
        ("a: {}\nb: 3", "b: must be a mapping of keys and values"),
    ],
)
def test_variants_that_are_none_are_one_line(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "v.yaml").write_text(text)
    with pytest.raises(ScenarioError, match=says):
        read_variants(tmp_path / "v.yaml")


def test_a_variant_with_a_mistake_is_told_before_anything_runs(folder: Path) -> None:
    variants = {"a": {}, "b": {"policies.scheduling": {"name": "lur"}}}
    with pytest.raises(ScenarioError, match="'lur' is unknown"):
        study(folder, into="never", policies=variants)
    assert not (folder / "never").exists()
