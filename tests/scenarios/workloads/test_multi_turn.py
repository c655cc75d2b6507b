"""Sessions: a turn's prompt is the whole history with the real answers, and the engine hits what it left behind."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from llmsim.policies.core.records import EventRecord, RequestRecord, StepRecord
from llmsim.policies.core.request import Arrival
from llmsim.scenarios.assembly import assemble
from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.workloads.building import build_workload
from llmsim.sim.driver import SimDriver
from llmsim.sim.executor import SimExecutor
from llmsim.tests.support.generators import scenario_with, whole, workload_of

BLOCK = 16


def sessions(**changes: Any) -> list[list[Arrival]]:
    """The turns of each session, every one served in a second."""
    found = defaultdict(list)
    for arrival in whole(workload_of("multi_turn", **changes)):
        found[arrival.request.session].append(arrival)
    return list(found.values())


def test_a_turn_says_all_that_was_said_and_something_new() -> None:
    for turns in sessions(system_tokens=30):
        assert turns[0].request.prompt.spans()[0] == (0, 0, 30)
        for before, after in pairwise(turns):
            said = before.request.prompt.spans()
            answer = (before.request.output_content, 0, before.output.length)
            assert after.request.prompt.spans()[: len(said) + 1] == [*said, answer]
            assert len(after.request.prompt.spans()) == len(said) + 2


def test_an_answer_that_was_cut_is_repeated_as_it_was() -> None:
    for turns in sessions(output_tokens=100, max_tokens={"fixed": 7}, turns=3):
        assert [turn.output.length for turn in turns] == [7, 7, 7]
        assert [length for _, _, length in turns[-1].request.prompt.spans()][2::2] == [7, 7]


def test_sessions_have_the_turns_and_pauses_that_were_asked_for() -> None:
    found = sessions(sessions=4000, turns={"uniform": {"min": 2, "max": 6}}, think_s={"exponential": 3})
    counts = np.array([len(turns) for turns in found])
    assert set(counts) == {2, 3, 4, 5, 6}
    assert counts.mean() == pytest.approx(4, abs=0.15)  # 6 standard errors
    ends = [(a.time_ns, b.time_ns) for turns in found for a, b in pairwise(turns)]
    pauses = np.array([b - a for a, b in ends]) / 1e9 - 1
    assert pauses.min() >= 0
    assert pauses.mean() == pytest.approx(3, rel=6 / len(pauses) ** 0.5)
    assert pauses.std() / pauses.mean() == pytest.approx(1, abs=0.05)


def test_a_session_ends_before_its_context_is_too_long() -> None:
    asked: dict[str, Any] = {"turns": 9, "system_tokens": 100, "user_tokens": 20, "output_tokens": 30}
    assert {len(turns) for turns in sessions(**asked)} == {9}
    assert {len(turns) for turns in sessions(**asked, max_context_tokens=249)} == {2}  # 100 + 50 a turn
    assert {len(turns) for turns in sessions(**asked, max_context_tokens=250)} == {3}
    assert {len(turns) for turns in sessions(**asked, max_context_tokens=1)} == {1}


class Ended:
    """A recorder that keeps the requests that ended, by session."""

    def __init__(self) -> None:
        self.sessions: dict[str | None, list[Any]] = defaultdict(list)

    def on_step(self, record: StepRecord) -> None:
        pass

    def on_gap(self, gap_ns: int, count: int) -> None:
        pass

    def on_request(self, record: RequestRecord) -> None:
        self.sessions[record.session].append(record)

    def on_event(self, record: EventRecord) -> None:
        pass


@pytest.mark.parametrize("depth_2", [False, True])
def test_the_engine_hits_all_full_blocks_of_the_last_turn_and_its_answer(depth_2: bool) -> None:
    scenario = scenario_with("multi_turn", sessions=30, rate=2.0, max_context_tokens=2000)
    whole_engine = scenario.engine.model_copy(update={"async_scheduling": depth_2})
    assembly = assemble(scenario.model_copy(update={"engine": whole_engine}))
    assert assembly.config.depth == 1 + depth_2
    ended = Ended()
    SimDriver(assembly.core(), SimExecutor(assembly.cost_model()), build_workload(scenario, print), ended).run()
    num_later = 0
    for session in ended.sessions.values():
        for before, after in pairwise(session):
            # The last token of an answer was never computed: it was put out, and nothing followed it.
            assert after.cached_tokens == (before.prompt_tokens + before.output_tokens - 1) // BLOCK * BLOCK
            assert after.sent_ns > before.last_token_ns
            num_later += 1
    assert num_later > 60


def test_clients_of_a_closed_loop_hold_one_session_after_another() -> None:
    workload = workload_of("multi_turn", concurrency=2, turns=3, sessions=6)
    one, two = workload.arrivals()
    assert [a.request.session for a in (one, two)] == ["s000000", "s000001"]
    ids = [one.request.id]
    now_ns = 0
    while followers := list(workload.on_finish(ids[-1], now_ns)):
        (follower,) = followers
        now_ns = follower.time_ns
        ids.append(follower.request.id)
    assert ids[:4] == ["r000000", "r000000.1", "r000000.2", "r000002"]
    assert len(ids) == 3 * 5  # the other client's session never ended


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"turns": 0}, "workload.turns: 0 is out of range"),
        ({"turns": 1001}, "workload.turns: has up to 1,001: a session has at most 1,000 turns"),
        ({"turns": {"uniform": {"min": 1, "max": 2000}}}, "workload.turns: has up to 2,000"),
        ({"turns": {"lognormal": {"mean": 3, "cv": 1}}}, "workload.turns: has no max"),
        ({"requests": 9}, "workload.requests: unknown key"),
        ({"sessions": 0}, "workload.sessions: 0 is out of range"),
        ({"think_s": {"exponential": 0}}, "workload.think_s.exponential: 0 is out of range"),
        ({"think_s": "long"}, "workload.think_s: must be a number"),
    ],
)
def test_wrong_sessions_are_one_line(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario_with("multi_turn", **wrong)
    assert str(caught.value).startswith(message)


def test_a_file_with_too_many_turns_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "turns").write_text("2000\n")
    with pytest.raises(ScenarioError, match=r"workload\.turns: 2,000 is out of range: at most 1,000"):
        list(workload_of("multi_turn", turns={"empirical": {"path": str(tmp_path / "turns")}}).arrivals())
