"""Sessions begin at their rate, what follows waits for what came before, and requests are the same in any order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llmsim.policies.core.request import Arrival
from llmsim.policies.core.workload import Workload
from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.schema_workload import TraceSettings
from llmsim.scenarios.workloads.building import play_trace
from llmsim.tests.support.command_line import llmsim
from llmsim.tests.support.scenario_files import write_trace

S = 1_000_000_000


def call(t: float, tokens: int, **fields: Any) -> dict[str, Any]:
    return {"t": t, "in": tokens, "out": 5, "hash_ids": [], "api_time": 0} | fields


AGENT = {
    "id": "s",
    "requests": [
        call(0, 10),
        {"t": 2, "type": "subagent", "requests": [call(0, 21), call(1, 22)]},
        {"t": 3, "type": "subagent", "requests": [call(0, 31)]},
        call(9, 40, think_time=4),
    ],
}


def workload(path: Path, warn: Any = pytest.fail, **keys: Any) -> Workload:
    given = {"type": "trace", "path": "x", "format": "weka", "rate": 0.5, "arrivals": "constant"} | keys
    return play_trace(TraceSettings.model_validate(given), path, 0, warn)


def tokens(arrivals: Any) -> list[tuple[int, int]]:
    return [(arrival.time_ns, arrival.request.prompt.num_tokens) for arrival in arrivals]


def write(folder: Path, *sessions: Any) -> Path:
    return write_trace(folder, json.dumps(sessions))


def test_sessions_begin_at_the_rate(tmp_path: Path) -> None:
    played = workload(write(tmp_path, *[AGENT] * 4)).arrivals()
    assert tokens(played) == [(0, 10), (2 * S, 10), (4 * S, 10), (6 * S, 10)]


def test_calls_follow_the_last_that_they_wait_for(tmp_path: Path) -> None:
    traffic = workload(write(tmp_path, AGENT))
    (first,) = traffic.arrivals()
    two = list(traffic.on_finish(first.request.id, 100 * S))
    assert tokens(two) == [(102 * S, 21), (103 * S, 31)]
    assert list(traffic.on_finish(two[1].request.id, 103 * S)) == []
    (inner,) = traffic.on_finish(two[0].request.id, 110 * S)
    assert tokens([inner]) == [(111 * S, 22)]
    (last,) = traffic.on_finish(inner.request.id, 120 * S)
    assert tokens([last]) == [(120 * S, 40)]
    assert last.request.arrival_ns == 120 * S
    assert list(traffic.on_finish(last.request.id, 121 * S)) == []


def test_think_time_counts_from_the_call_before_not_from_the_sub_agents(tmp_path: Path) -> None:
    quick = {
        "requests": [call(0, 10), {"t": 0, "type": "subagent", "requests": [call(0, 21)]}, call(0, 40, think_time=4)]
    }
    traffic = workload(write(tmp_path, quick))
    (first,) = traffic.arrivals()
    (inner,) = traffic.on_finish(first.request.id, 0)
    assert tokens(traffic.on_finish(inner.request.id, S)) == [(4 * S, 40)]


def finished(traffic: Workload, last_first: bool) -> dict[str, Arrival]:
    """All requests, each ended at once or as late as possible."""
    pending, seen = list(traffic.arrivals()), {}
    while pending:
        arrival = pending.pop(-1 if last_first else 0)
        seen[arrival.request.id] = arrival
        pending.extend(traffic.on_finish(arrival.request.id, arrival.time_ns))
    return seen


def test_requests_are_the_same_in_whatever_order_they_end(tmp_path: Path) -> None:
    traffic = workload(write(tmp_path, AGENT, AGENT, AGENT))
    one, two = finished(traffic, True), finished(traffic, False)
    assert len(one) == 15
    assert sorted(one) == sorted(two)
    for name, arrival in one.items():
        assert repr(arrival.request.prompt) == repr(two[name].request.prompt)
        assert arrival.request.output_content == two[name].request.output_content
        assert arrival.request.session == "s"


def test_a_refused_call_lets_the_session_go_on(tmp_path: Path) -> None:
    traffic = workload(write(tmp_path, {"requests": [call(0, 0), call(1, 7, think_time=1)]}))
    (first,) = traffic.arrivals()
    assert first.refusal == "the prompt is empty"
    assert tokens(traffic.on_finish(first.request.id, 0)) == [(S, 7)]


def test_sessions_without_requests_are_told_and_take_no_turn(tmp_path: Path) -> None:
    path = write(tmp_path, {"requests": []}, AGENT, {"requests": []}, AGENT)
    warned: list[str] = []
    traffic = workload(path, warned.append)
    assert tokens(traffic.arrivals()) == [(0, 10), (2 * S, 10)]
    assert warned == [f"{path}: 2 of 4 sessions have no request and are left out"]
    with pytest.raises(ScenarioError, match="no session of the trace has a request"):
        workload(path, limit=1)


def test_conversations_run_to_their_end_and_hit_what_they_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    turns = [{"from": who, "value": "x" * 640} for who in ("human", "gpt") * 3]
    path = write(tmp_path, *({"id": str(index), "conversations": turns} for index in range(5)))
    (tmp_path / "s.yaml").write_text(
        "{name: s, model: tiny, hardware: {gpu: h100-sxm}, "
        f"workload: {{type: trace, format: sharegpt, path: {path.name}, rate: 10}}}}"
    )
    done = llmsim(capsys, "run", tmp_path / "s.yaml", "--json", "-o", tmp_path / "out")
    assert done.code == 0
    assert done.json()["num_requests"]["finished"] == 15
    # Of 160, 480 and 800 prompt tokens a turn, later turns find all that was there: their prompts but the last text.
    assert done.json()["prefix_hit_rate"] > 0.6
    assert "lengths of texts are estimates: 4 characters a token" in done.err
