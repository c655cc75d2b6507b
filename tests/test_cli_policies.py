"""A policy of one's own, named by its file: it runs wherever the house's do, and its faults are told in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmsim.policies import guarding, registry
from llmsim.policies.conformance import FEATURES
from llmsim.scenarios import policy_watch
from llmsim.tests.support.command_line import contents, llmsim
from llmsim.tests.support.scenario_files import MINIMAL, write_scenario

Capture = pytest.CaptureFixture[str]

MINE = '''
from pathlib import Path

from llmsim.policies.scheduling.fcfs import Fcfs


class Lifo(Fcfs):
    """Last come, first served.

    For tests.
    """

    def __init__(self, patience_s: float = 2.0, mode: str | None = None) -> None:
        self.num_calls = 0

    def insert(self, queue, sequence):
        queue.append_left(sequence)


class Raises(Lifo):
    def reorder(self, queue, view):
        self.num_calls += 1
        if self.num_calls == 3:
            raise RuntimeError("no more")


class Hangs(Lifo):
    def reorder(self, queue, view):
        while True:
            pass


class Fickle(Lifo):
    def reorder(self, queue, view):
        self.num_calls += 1
        if self.num_calls == 3 and Path("raises").exists():
            raise RuntimeError("no more")
        while self.num_calls == 3 and Path("hangs").exists():
            pass


class Rooted(Lifo):
    requires = ("radix_tree",)


class Paired(Lifo):
    requires = ("batching.static",)


class Indexed(Lifo):
    requires = ("prefix_index",)
'''
CROWDED = (
    MINIMAL.replace("independent", "independent, requests: 30, rate: inf, output_tokens: {uniform: {min: 9, max: 90}}")
    + "engine: {max_num_seqs: 2}\n"
)
SCENARIO = CROWDED + 'policies: {scheduling: {name: "./mine.py:Lifo"}}\n'


@pytest.fixture(autouse=True)
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A scenario in a folder with its policies; the working directory is another one."""
    folder, here = tmp_path / "study", tmp_path / "here"
    folder.mkdir()
    here.mkdir()
    monkeypatch.chdir(here)
    (folder / "mine.py").write_text(MINE)
    return write_scenario(folder, SCENARIO)


def error_of(capsys: Capture, *arguments: object) -> str:
    done = llmsim(capsys, *arguments)
    assert (done.code, done.out) == (2, "")
    (line,) = [line for line in done.err.splitlines() if not line.startswith("warning:")]
    return line


def with_policy(name: str) -> tuple[str, str]:
    return "--set", f"policies.scheduling.name=./mine.py:{name}"


def test_it_is_found_beside_the_scenario_and_decides(scenario: Path, capsys: Capture) -> None:
    mine = llmsim(capsys, "run", scenario, "--json")
    assert mine.code == 0
    assert "./mine.py:Lifo" in mine.err
    house = llmsim(capsys, "run", scenario, "--json", "--set", "policies.scheduling={name: fcfs}")
    assert mine.json()["num_requests"]["finished"] == house.json()["num_requests"]["finished"] == 30
    assert mine.json()["ttft_s"]["p50"] != house.json()["ttft_s"]["p50"]
    assert llmsim(capsys, "check", scenario).code == 0


def test_it_may_stand_in_the_working_directory_which_is_said(scenario: Path, capsys: Capture) -> None:
    (scenario.parent / "mine.py").rename("mine.py")
    done = llmsim(capsys, "check", scenario)
    assert done.code == 0
    says = "policies.scheduling.name: ./mine.py is taken from the working directory, not the scenario's folder"
    assert f"warning: {says}" in done.err


def test_the_resolved_scenario_names_it_as_given_and_loads_again(scenario: Path, capsys: Capture) -> None:
    assert llmsim(capsys, "run", scenario, "-o", "out").code == 0
    resolved = scenario.parent / "again.yaml"
    resolved.write_text(Path("out/scenario.yaml").read_text())
    assert "./mine.py:Lifo" in resolved.read_text()
    assert llmsim(capsys, "run", resolved, "-o", "again").code == 0
    assert contents(Path("out")) == contents(Path("again"))


def test_it_works_in_other_processes(scenario: Path, capsys: Capture) -> None:
    done = llmsim(capsys, "run", scenario, "--replications", 2, "--jobs", 2, "-o", "out", "--set", "workload.rate=9")
    assert done.code == 0
    line = error_of(capsys, "run", scenario, "--replications", 2, "--jobs", 2, *with_policy("Raises"), "-o", "no")
    assert ": policies.scheduling: ./mine.py:Raises: step " in line
    assert line.endswith(": reorder raised RuntimeError: no more (mine.py, line 24)")
    assert not Path("no").exists()


def test_a_sweep_over_policies_knows_a_file_that_has_changed(scenario: Path, capsys: Capture) -> None:
    vary = "policies.scheduling.name=fcfs,./mine.py:Lifo"
    swept = [llmsim(capsys, "sweep", scenario, "--vary", vary, "--jobs", 1, "-o", "out", "--json") for _ in range(2)]
    assert [done.json()["num_known"] for done in swept] == [0, 2]
    (scenario.parent / "mine.py").write_text(MINE + "\n# changed\n")
    assert (
        llmsim(capsys, "sweep", scenario, "--vary", vary, "--jobs", 1, "-o", "out", "--json").json()["num_known"] == 1
    )


def test_a_replay_needs_the_same_file_again(scenario: Path, capsys: Capture) -> None:
    assert llmsim(capsys, "run", scenario, "-o", "out", "--journal").code == 0
    assert llmsim(capsys, "replay", "out", "--from", scenario.parent).code == 0
    missing = error_of(capsys, "replay", "out")
    assert missing.startswith("error: out/journal.jsonl.gz: line 1: policies: there is no file ./mine.py")
    assert missing.endswith("--from says where it lies")
    (scenario.parent / "mine.py").write_text(MINE + "\n# changed\n")
    changed = error_of(capsys, "replay", "out", "--from", scenario.parent)
    assert changed.endswith(": policies: ./mine.py:Lifo has changed since the journal was written")


def test_a_fault_is_one_line_and_leaves_nothing_behind(scenario: Path, capsys: Capture) -> None:
    line = error_of(capsys, "run", scenario, *with_policy("Raises"), "-o", "out")
    assert line.startswith(f"error: {scenario}: policies.scheduling: ./mine.py:Raises: step ")
    assert line.endswith(": reorder raised RuntimeError: no more (mine.py, line 24)")
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("place", ["before", "after"])
def test_debug_shows_the_traceback(scenario: Path, capsys: Capture, place: str) -> None:
    command = ["run", scenario, *with_policy("Raises")]
    done = llmsim(capsys, *(["--debug", *command] if place == "before" else [*command, "--debug"]))
    assert (done.code, done.out) == (2, "")
    assert 'raise RuntimeError("no more")' in done.err
    assert "Traceback (most recent call last)" in done.err
    assert done.err.splitlines()[-1].startswith("error: ")


def test_one_that_hangs_is_stopped(scenario: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarding, "LONGEST_CALL_S", 0.2)
    monkeypatch.setattr(policy_watch, "TICK_S", 0.05)
    line = error_of(capsys, "run", scenario, *with_policy("Hangs"))
    assert line.endswith("./mine.py:Hangs: step 0: reorder had not come back after 0.2 s")


@pytest.mark.parametrize("fault", ["raises", "hangs"])
def test_a_fault_in_the_pass_before_a_warm_run_is_told_of_a_replay_as_of_the_run(
    scenario: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr(guarding, "LONGEST_CALL_S", 0.2)
    monkeypatch.setattr(policy_watch, "TICK_S", 0.05)
    run = ["run", scenario, *with_policy("Fickle"), "--set", "run.cache=warm", "--journal"]
    assert llmsim(capsys, *run, "-o", "out").code == 0
    assert llmsim(capsys, "replay", "out", "--from", scenario.parent).code == 0
    Path(fault).touch()
    of_run, of_replay = error_of(capsys, *run), error_of(capsys, "replay", "out", "--from", scenario.parent)
    assert ": policies.scheduling: ./mine.py:Fickle: step 2: reorder " in of_run
    assert of_replay == of_run.replace(str(scenario), "out/journal.jsonl.gz")


@pytest.mark.parametrize(
    ("name", "settings", "says"),
    [
        ("Rooted", [], "'./mine.py:Rooted' requires a radix tree as prefix index (radix_tree), which comes with "),
        ("Paired", [], "'./mine.py:Paired' requires policies.batching.name: static, which is 'unified' here"),
        (
            "Indexed",
            ["engine.enable_prefix_caching=false"],
            "'./mine.py:Indexed' requires an index of cached prefixes (prefix_index), which comes with "
            "engine.enable_prefix_caching: true",
        ),
    ],
)
def test_an_invalid_combination_is_refused_before_the_run_naming_both_sides(
    scenario: Path, capsys: Capture, name: str, settings: list[str], says: str
) -> None:
    given = [word for setting in settings for word in ("--set", setting)]
    for command in ("check", "run"):
        line = error_of(capsys, command, scenario, *with_policy(name), *given)
        assert f": policies.scheduling.name: {says}" in line


def test_what_is_required_and_there_is_no_hindrance(scenario: Path, capsys: Capture) -> None:
    assert llmsim(capsys, "check", scenario, *with_policy("Indexed")).code == 0
    assert llmsim(capsys, "check", scenario, *with_policy("Paired"), "--set", "policies.batching.name=static").code == 0


def test_show_says_all_about_a_policy(scenario: Path, capsys: Capture) -> None:
    done = llmsim(capsys, "policies", "show", f"{scenario.parent}/mine.py:Indexed")
    assert (done.code, done.err) == (0, "")
    for says in ("Last come, first served.", "For tests.", "patience_s", "float", "2.0", "str | None", "prefix_index"):
        assert says in done.out, says
    assert str(scenario.parent / "mine.py") in done.out.replace("\n", "")
    facts = llmsim(capsys, "policies", "show", "chunk_size/fixed", "--json").json()
    assert facts["parameters"] == {"tokens": {"type": "int"}}
    assert (facts["kind"], facts["name"], facts["requires"]) == ("chunk_size", "fixed", ["chunked_prefill"])
    assert facts["file"].endswith("policies/chunk_size/fixed.py")


def test_every_policy_of_the_house_can_be_shown(capsys: Capture) -> None:
    for kind in registry.KINDS:
        for name in registry.policies(kind):
            assert llmsim(capsys, "policies", "show", f"{kind}/{name}").code == 0


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("fixd", "'fixd' is unknown; did you mean 'fixed'? choose "),
        ("eviction/fixed", "'fixed' is unknown; choose "),
        ("./none.py:Mine", "there is no file none.py"),
    ],
)
def test_show_of_what_is_not_there_says_what_is(capsys: Capture, name: str, says: str) -> None:
    assert error_of(capsys, "policies", "show", name).startswith(f"error: {says}")


def test_the_matrix_of_combinations_names_every_policy_that_requires_something(capsys: Capture) -> None:
    done = llmsim(capsys, "list", "policies")
    rows = [line for line in done.out.splitlines() if "●" in line and "(●)" not in line]
    marks = {row.split()[0]: row.count("●") for row in rows}
    known = llmsim(capsys, "list", "policies", "--json").json()
    requiring = {name: facts["requires"] for kind in known for name, facts in known[kind].items() if facts["requires"]}
    assert marks == {name: len(requires) for name, requires in requiring.items()}
    assert {feature for requires in requiring.values() for feature in requires} <= FEATURES.keys()
