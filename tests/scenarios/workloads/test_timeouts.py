"""Clients that give up: the engine aborts their requests, and they come again as often as was asked for."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from llmsim.policies.core.frontend import Frontend
from llmsim.policies.core.records import Status
from llmsim.scenarios.assembly import assemble
from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.schema import Scenario
from llmsim.scenarios.workloads.building import build_workload
from llmsim.sim.driver import SimDriver
from llmsim.sim.executor import SimExecutor
from llmsim.tests.sim.test_leaps import Rows
from llmsim.tests.support.command_line import llmsim
from llmsim.tests.support.generators import scenario_with
from llmsim.tests.support.scenario_files import write_scenario

S = 1_000_000_000
CROWD = {"requests": 60, "rate": "inf", "output_tokens": 100}


def played(scenario: Scenario, **frontend: int) -> Rows:
    """What a run of four slots records."""
    engine = scenario.engine.model_copy(update={"max_num_seqs": 4})
    assembly = assemble(scenario.model_copy(update={"engine": engine}))
    rows, core = Rows(), assembly.core()
    workload = build_workload(scenario, print)
    SimDriver(core, SimExecutor(assembly.cost_model()), workload, rows, frontend=Frontend(**frontend)).run()
    core.check_integrity()
    assert not core.sequences
    assert core.num_free_blocks == assembly.config.num_blocks - 1
    return rows


def by_client(rows: Rows) -> dict[str, list[Any]]:
    """The tries of each client, in order."""
    tries = defaultdict(list)
    for record in sorted(rows.requests, key=lambda record: record.sent_ns):
        tries[record.request_id.partition("+")[0]].append(record)
    return tries


def test_whoever_waits_too_long_is_aborted() -> None:
    patient = played(scenario_with("independent", **CROWD))
    waits = sorted((r.last_token_ns - r.sent_ns) / S for r in patient.requests)
    limit = waits[20]
    rows = played(scenario_with("independent", **CROWD, timeout_s=limit))
    assert len(rows.requests) == 60
    finished = [r for r in rows.requests if r.status is Status.FINISHED]
    aborted = [r for r in rows.requests if r.status is Status.ABORTED]
    assert len(finished) + len(aborted) == 60
    assert len(finished) >= 10
    assert len(aborted) >= 30
    assert all(r.last_token_ns - r.sent_ns <= limit * S + 1 for r in finished)
    events = [event for event in rows.events if event.kind == "abort"]
    assert [e.request_id for e in events] == [r.request_id for r in aborted]
    assert all(event.reason == "timeout" and event.time_ns >= limit * S for event in events)


def test_a_long_patience_changes_nothing() -> None:
    plain = played(scenario_with("independent", **CROWD))
    patient = played(scenario_with("independent", **CROWD, timeout_s=1e6, retries=3))
    assert patient.requests == plain.requests
    assert patient.steps == plain.steps


def test_a_client_tries_again_after_a_wait_that_doubles() -> None:
    rows = played(scenario_with("independent", **CROWD, timeout_s=0.1, retries=3, backoff_s=0.5), ingress_ns=1000)
    tries = by_client(rows)
    assert len(tries) == 60
    aborted_at = {event.request_id: event.time_ns for event in rows.events if event.kind == "abort"}
    num_retries = 0
    for client in tries.values():
        assert all(record.status is Status.ABORTED for record in client[:-1])
        assert client[-1].status is Status.FINISHED or len(client) == 4
        assert len({record.prompt_tokens for record in client}) == 1
        for retry, (before, after) in enumerate(pairwise(client)):
            assert after.sent_ns - aborted_at[before.request_id] == S // 2 << retry
            num_retries += 1
    assert num_retries > 60


def test_a_session_goes_on_after_a_retry_and_ends_with_the_last() -> None:
    asked: dict[str, Any] = {"sessions": 30, "turns": 3, "think_s": 0.01, "rate": "inf", "output_tokens": 100}
    rows = played(scenario_with("multi_turn", **asked, timeout_s=0.25, retries=1, backoff_s=0.2))
    turns = by_client(rows)
    sessions: dict[str, list[Status]] = defaultdict(list)
    for name, tries in turns.items():
        sessions[name.partition(".")[0]].append(tries[-1].status)
    assert any(len(tries) == 2 and tries[1].status is Status.FINISHED for tries in turns.values())
    for ends in sessions.values():
        assert len(ends) == 3 or ends[-1] is Status.ABORTED
        assert all(end is Status.FINISHED for end in ends[:-1])
    assert any(len(ends) < 3 for ends in sessions.values())


def test_clients_of_a_closed_loop_go_on_after_giving_up() -> None:
    asked = {"requests": 40, "concurrency": 8, "output_tokens": 100, "timeout_s": 0.1}
    rows = played(scenario_with("independent", **asked))
    assert len(rows.requests) == 40
    assert {r.status for r in rows.requests} >= {Status.ABORTED}


def test_a_journal_with_aborts_replays_to_the_same_plans(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    impatient = ["workload.rate=inf", "workload.requests=50", "workload.timeout_s=0.2", "workload.retries=1"]
    overrides = [word for text in [*impatient, "engine.max_num_seqs=4"] for word in ("--set", text)]
    result = tmp_path / "result"
    ran = llmsim(capsys, "run", write_scenario(tmp_path), *overrides, "--journal", "--json", "-o", result)
    assert ran.code == 0
    assert ran.json()["num_requests"]["aborted"] > 20
    assert llmsim(capsys, "replay", result / "journal.jsonl.gz").code == 0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"timeout_s": 0}, "workload.timeout_s: 0 is out of range"),
        ({"retries": 2}, "workload: retries go with timeout_s only"),
        ({"timeout_s": 1, "retries": 21}, "workload.retries: 21 is out of range: must be at most 20"),
        ({"timeout_s": 1, "backoff_s": -1}, "workload.backoff_s: -1 is out of range"),
    ],
)
def test_impossible_patience_is_one_line(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario_with("independent", **wrong)
    assert str(caught.value).startswith(message)
