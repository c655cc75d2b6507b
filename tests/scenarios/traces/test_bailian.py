"""Chats of the Bailian traces become rows with shared blocks and one session a chat."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.traces.bailian import read_bailian
from llmsim.tests.support.scenario_files import write_trace

GOOD = {
    "chat_id": 159,
    "parent_chat_id": -1,
    "timestamp": 61.125,
    "input_length": 40,
    "output_length": 7,
    "type": "text",
    "turn": 1,
    "hash_ids": [4, 0, 9],
}


def row_text(**changes: object) -> str:
    """The good row with changes; `...` takes a field out."""
    return json.dumps({key: value for key, value in (GOOD | changes).items() if value is not ...}) + "\n"


def complaint(folder: Path, text: str) -> str:
    path = write_trace(folder, text)
    with pytest.raises(ScenarioError) as caught:
        list(read_bailian(path))
    return str(caught.value).removeprefix(f"{path}: ")


def test_times_are_seconds_and_blocks_are_sixteen_tokens(tmp_path: Path) -> None:
    (row,) = read_bailian(write_trace(tmp_path, row_text()))
    assert row.time_ns == 61_125_000_000
    assert row.prompt.spans() == [(4, 0, 16), (0, 0, 16), (9, 0, 8)]
    assert (row.output_tokens, row.session) == (7, "159")


def test_turns_of_a_chat_are_one_session_named_by_its_first(tmp_path: Path) -> None:
    chats = [(1, -1), (2, 1), (9, None), (3, 2), (4, 3), (8, 77), (10, 8), (11, 9)]
    text = "".join(row_text(chat_id=chat, parent_chat_id=parent) for chat, parent in chats)
    sessions = [row.session for row in read_bailian(write_trace(tmp_path, text))]
    assert sessions == ["1", "1", "9", "1", "1", "77", "77", "9"]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"chat_id": ...}, "chat_id: is missing"),
        ({"parent_chat_id": ...}, "parent_chat_id: is missing"),
        ({"timestamp": ...}, "timestamp: is missing"),
        ({"hash_ids": ...}, "hash_ids: is missing"),
        ({"chat_id": [1]}, "chat_id: must be text or a whole number, not [1]"),
        ({"timestamp": float("nan")}, "timestamp: must be a finite number, not nan"),
        ({"timestamp": -0.5}, "timestamp: -0.5 is out of range: must be at least 0, within 292 years"),
        ({"input_length": -1}, "input_length: -1 is out of range: must be at least 0"),
        ({"output_length": 1.5}, "output_length: must be a whole number, not 1.5"),
        ({"hash_ids": [4, 0, "9"]}, "hash_ids: must be a list of whole numbers, not [4, 0, '9']"),
        ({"hash_ids": [4, 0]}, "hash_ids: has 2 ids, but 40 tokens in blocks of 16 need 3"),
    ],
)
def test_bad_field_is_told_by_line_and_name(tmp_path: Path, changes: dict[str, object], says: str) -> None:
    assert complaint(tmp_path, row_text() + row_text(**changes)) == f"line 2: {says}"
