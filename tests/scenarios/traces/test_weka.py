"""An agent's session becomes calls that wait for one another, for sub-agents and for time to think."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llmsim.scenarios.content_ids import unique_prompt
from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.traces.sessions import TraceSession
from llmsim.scenarios.traces.weka import read_weka
from llmsim.tests.support.scenario_files import write_trace

S = 1_000_000_000


def call(t: float, **fields: Any) -> dict[str, Any]:
    """A request; `...` takes a field out."""
    whole = {"t": t, "type": "n", "in": 100, "out": 5, "hash_ids": [1, 2], "api_time": 2.0} | fields
    return {key: value for key, value in whole.items() if value is not ...}


def agent(t: float, *requests: Any) -> dict[str, Any]:
    return {"t": t, "type": "subagent", "agent_id": "a", "requests": list(requests)}


def session(*requests: Any, **fields: Any) -> dict[str, Any]:
    return {"id": "s", "block_size": 64, "hash_id_scope": "local", "requests": list(requests)} | fields


def read(folder: Path, *sessions: Any) -> list[TraceSession]:
    return list(read_weka(write_trace(folder, "\n".join(json.dumps(each) for each in sessions))))


def waits(folder: Path, *requests: Any) -> list[tuple[tuple[int, int], ...]]:
    (only,) = read(folder, session(*requests))
    return [each.after for each in only.calls]


def complaint(folder: Path, *sessions: Any) -> str:
    with pytest.raises(ScenarioError) as caught:
        read(folder, *sessions)
    return str(caught.value).removeprefix(f"{folder / 'trace'}: ")


def test_a_call_waits_for_the_one_before_and_its_think_time(tmp_path: Path) -> None:
    assert waits(tmp_path, call(0, think_time=9), call(30, think_time=1.5)) == [(), ((0, 1_500_000_000),)]


def test_without_think_time_it_is_what_service_left_over(tmp_path: Path) -> None:
    requests = (call(0), call(5), call(6, api_time=...), call(7))
    assert waits(tmp_path, *requests) == [(), ((0, 3 * S),), ((1, 0),), ((2, S),)]


def test_sub_agents_run_side_by_side_and_the_next_call_waits_for_all(tmp_path: Path) -> None:
    requests = (
        call(0),
        agent(3, call(0, think_time=7), call(4, think_time=1)),
        agent(4, call(0)),
        agent(4),
        call(20, think_time=0.5),
    )
    assert waits(tmp_path, *requests) == [(), ((0, S),), ((1, S),), ((0, 2 * S),), ((0, S // 2), (2, 0), (3, 0))]


def test_sub_agents_nest(tmp_path: Path) -> None:
    inner = agent(3, call(0), agent(2, call(0)), agent(2, call(0)))
    assert waits(tmp_path, call(0), inner, call(9, think_time=0)) == [
        (),
        ((0, S),),
        ((1, 0),),
        ((1, 0),),
        ((0, 0), (2, 0), (3, 0)),
    ]


def test_a_session_may_begin_with_sub_agents(tmp_path: Path) -> None:
    assert waits(tmp_path, agent(0, call(0)), agent(0, call(0)), call(3)) == [(), (), ((0, 0), (1, 0))]


def test_blocks_are_local_to_their_session_and_shared_with_its_sub_agents(tmp_path: Path) -> None:
    one, two = read(tmp_path, session(call(0), agent(1, call(0))), session(call(0)))
    first, inner = (each.prompt.spans() for each in one.calls)
    assert [length for _, _, length in first] == [64, 36]
    assert first == inner
    assert not {content for content, _, _ in first} & set(two.calls[0].prompt.contents)
    assert (one.first_index, two.first_index) == (0, 2)


def test_global_blocks_are_shared_by_sessions(tmp_path: Path) -> None:
    one, two = read(tmp_path, *[session(call(0), hash_id_scope="global")] * 2)
    assert one.calls[0].prompt.spans() == two.calls[0].prompt.spans() == [(1, 0, 64), (2, 0, 36)]


def test_tokens_that_no_id_names_are_the_calls_own(tmp_path: Path) -> None:
    (only,) = read(tmp_path, session(call(0), call(0, hash_ids=[1]), call(0, hash_ids=[])))
    assert [each.prompt.num_tokens for each in only.calls] == [100, 100, 100]
    assert only.calls[1].prompt.spans()[1:] == [(unique_prompt(1), 0, 36)]
    assert only.calls[2].prompt.spans() == [(unique_prompt(2), 0, 100)]


def test_block_size_is_the_sessions_own(tmp_path: Path) -> None:
    (only,) = read(tmp_path, session(call(0), block_size=50))
    assert [length for _, _, length in only.calls[0].prompt.spans()] == [50, 50]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"t": ...}, "t: is missing"),
        ({"in": ...}, "in: is missing"),
        ({"out": ...}, "out: is missing"),
        ({"hash_ids": ...}, "hash_ids: is missing"),
        ({"t": float("nan")}, "t: must be a finite number, not nan"),
        ({"t": -1}, "t: -1 is out of range: must be at least 0, within 292 years"),
        ({"think_time": -1}, "think_time: -1 is out of range: must be at least 0, within 292 years"),
        ({"api_time": "x"}, "api_time: must be a finite number, not 'x'"),
        ({"in": -5}, "in: -5 is out of range: must be at least 0"),
        ({"out": 1.5}, "out: must be a whole number, not 1.5"),
        ({"hash_ids": [1, 2, 3]}, "hash_ids: has 3 ids, but 100 tokens in blocks of 64 are 2"),
        ({"hash_ids": [1, -2]}, "hash_ids: an id is out of range: must be at least 0, below 2^32"),
        ({"hash_ids": [1, 2**32]}, "hash_ids: an id is out of range: must be at least 0, below 2^32"),
    ],
)
def test_bad_field_is_told_by_session_and_request(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    bad = session(call(0), agent(0, call(**({"t": 0} | changes))))
    assert complaint(tmp_path, session(call(0)), bad) == f"session 2: request 3: {says}"


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"requests": 5}, "requests: must be a list of requests, not 5"),
        ({"requests": [5]}, "request 1: must be an object, not 5"),
        ({"requests": [{"t": 0, "type": "subagent"}]}, "requests: must be a list of requests, not null (nothing)"),
        ({"block_size": 0}, "block_size: must be a whole number from 1, not 0"),
        ({"hash_id_scope": "lokal"}, "hash_id_scope: 'lokal' is unknown; choose global, local"),
        ({"id": [1]}, "id: must be printable text or a number, not [1]"),
    ],
)
def test_bad_session_is_told_by_its_number(tmp_path: Path, fields: dict[str, Any], says: str) -> None:
    assert complaint(tmp_path, session(call(0)), session(**fields)) == f"session 2: {says}"


def test_endless_nesting_is_refused(tmp_path: Path) -> None:
    nested = agent(0, call(0))
    for _ in range(60):
        nested = agent(0, nested)
    assert complaint(tmp_path, session(nested)) == "session 1: sub-agents are nested more than 50 deep"
