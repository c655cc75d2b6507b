"""A ShareGPT conversation becomes a session whose prompts grow by what was said and answered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llmsim.scenarios.content_ids import output_content
from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.traces.sessions import TraceSession
from llmsim.scenarios.traces.sharegpt import read_sharegpt
from llmsim.tests.support.scenario_files import write_trace

LETTERS = {"h": "human", "g": "gpt", "s": "system"}


def conversation(*turns: tuple[str, str], name: object = "c") -> dict[str, object]:
    return {"id": name, "conversations": [{"from": LETTERS[who], "value": text} for who, text in turns]}


def read(folder: Path, *conversations: object) -> list[TraceSession]:
    return list(read_sharegpt(write_trace(folder, json.dumps(conversations)), 4.0))


def complaint(folder: Path, *conversations: object) -> str:
    with pytest.raises(ScenarioError) as caught:
        read(folder, *conversations)
    return str(caught.value).removeprefix(f"{folder / 'trace'}: ")


def test_each_answer_is_a_call_after_the_one_before(tmp_path: Path) -> None:
    turns = [("h", "q" * 100), ("g", "a" * 20), ("h", "r" * 10), ("g", "b" * 80)]
    first, second = read(tmp_path, conversation(*turns, name="x"), conversation(*turns[:2], name=7))
    assert (first.name, first.first_index, second.name, second.first_index) == ("x", 0, "7", 2)
    assert [(call.output_tokens, call.after) for call in first.calls] == [(5, ()), (20, ((0, 0),))]
    assert [call.prompt.num_tokens for call in first.calls] == [25, 25 + 5 + 3]


def test_a_later_prompt_is_the_earlier_one_and_what_it_generated(tmp_path: Path) -> None:
    turns = [("h", "q" * 100), ("g", "a" * 20), ("h", "r" * 10), ("g", "b" * 80)]
    _, session = read(tmp_path, conversation(("h", "x"), ("g", "y")), conversation(*turns))
    one, two = (call.prompt.spans() for call in session.calls)
    assert two[: len(one)] == one
    assert two[len(one)] == (output_content(1), 0, 5)


def test_conversations_share_a_common_system_prompt_and_nothing_else(tmp_path: Path) -> None:
    system = ("s", "be kind. " * 64)
    one, two = read(tmp_path, *(conversation(system, ("h", text * 50), ("g", "a")) for text in "xy"))
    alike = set(one.calls[0].prompt.spans()) & set(two.calls[0].prompt.spans())
    assert sum(length for _, _, length in alike) == 9 * 64 // 4


@pytest.mark.parametrize(
    ("who", "num_calls"), [("", 0), ("h", 0), ("g", 0), ("gh", 0), ("ghg", 1), ("hhgg", 1), ("shghg", 2), ("hggh", 1)]
)
def test_what_nobody_asked_is_history_and_what_nobody_answered_is_no_call(
    tmp_path: Path, who: str, num_calls: int
) -> None:
    (session,) = read(tmp_path, conversation(*((letter, "text") for letter in who)))
    assert len(session.calls) == num_calls


def test_an_empty_answer_is_a_call_without_output(tmp_path: Path) -> None:
    (session,) = read(tmp_path, conversation(("h", "a"), ("g", ""), ("h", "b"), ("g", "c")))
    assert [call.output_tokens for call in session.calls] == [0, 1]


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"id": "a"}, "conversations: is missing"),
        ({"conversations": "x"}, "conversations: must be a list of turns, not 'x'"),
        (
            {"conversations": [{"value": "x"}]},
            "turn 1: from: null (nothing) is unknown; choose assistant, ",
        ),
        ({"conversations": [{"from": "robot", "value": "x"}]}, "turn 1: from: 'robot' is unknown; choose assistant, "),
        ({"conversations": [5]}, "turn 1: from: null (nothing) is unknown; choose assistant, "),
        ({"conversations": [{"from": "gpt"}]}, "turn 1: value: must be text, not null (nothing)"),
        ({"conversations": [], "id": [1]}, "id: must be printable text or a number, not [1]"),
        ({"conversations": [], "id": "a\nb"}, "id: must be printable text or a number, not 'a\\nb'"),
    ],
)
def test_bad_field_is_told_by_conversation_and_turn(tmp_path: Path, fields: dict[str, object], says: str) -> None:
    good = conversation(("h", "a"), ("g", "b"))
    assert complaint(tmp_path, good, fields).startswith(f"conversation 2: {says}")
