"""Rows of block ids become spans; a bad row is told by file, line and field."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.traces.hash_ids import read_hash_ids
from llmsim.scenarios.traces.mooncake import read_mooncake
from llmsim.tests.support.scenario_files import write_trace
from llmsim.tests.support.shared import shared

GOOD = {"timestamp": 1.5, "input_length": 40, "output_length": 7, "hash_ids": [4, 0, 9]}


def row_text(**changes: object) -> str:
    """The good row with changes; None takes a field out."""
    row = {key: value for key, value in (GOOD | changes).items() if value is not None}
    return json.dumps(row) + "\n"


def complaint(folder: Path, text: str) -> str:
    path = write_trace(folder, text)
    with pytest.raises(ScenarioError) as caught:
        list(read_hash_ids(path, 16))
    said = str(caught.value)
    assert "\n" not in said
    assert said.startswith(f"{path}: ")
    return said.removeprefix(f"{path}: ")


def test_ids_are_spans_of_a_block_and_the_last_is_what_is_left(tmp_path: Path) -> None:
    (row,) = read_hash_ids(write_trace(tmp_path, row_text(session=18)), 16)
    assert row.time_ns == 1_500_000
    assert row.prompt.spans() == [(4, 0, 16), (0, 0, 16), (9, 0, 8)]
    assert row.output_tokens == 7
    assert row.session == "18"


def test_a_last_block_may_be_full(tmp_path: Path) -> None:
    (row,) = read_hash_ids(write_trace(tmp_path, row_text(input_length=48)), 16)
    assert row.prompt.spans()[-1] == (9, 0, 16)


def test_mooncake_blocks_are_512_tokens(tmp_path: Path) -> None:
    (row,) = read_mooncake(write_trace(tmp_path, row_text(input_length=1100, timestamp=3000)))
    assert row.prompt.spans() == [(4, 0, 512), (0, 0, 512), (9, 0, 76)]
    assert row.time_ns == 3_000_000_000


def test_fields_of_no_use_are_left_alone(tmp_path: Path) -> None:
    (row,) = read_hash_ids(write_trace(tmp_path, row_text(turn=3, type="text")), 16)
    assert row.session is None


def test_empty_prompt_and_empty_output_are_rows(tmp_path: Path) -> None:
    (row,) = read_hash_ids(write_trace(tmp_path, row_text(input_length=0, output_length=0, hash_ids=[])), 16)
    assert row.prompt.num_tokens == 0
    assert row.output_tokens == 0


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"timestamp": None}, "timestamp: is missing"),
        ({"output_length": None}, "output_length: is missing"),
        ({"hash_ids": None}, "hash_ids: is missing"),
        ({"timestamp": float("nan")}, "timestamp: must be a finite number, not nan"),
        ({"timestamp": float("inf")}, "timestamp: must be a finite number, not inf"),
        ({"timestamp": "0"}, "timestamp: must be a finite number, not '0'"),
        ({"timestamp": True}, "timestamp: must be a finite number, not true"),
        ({"timestamp": -1}, "timestamp: -1 is out of range: must be at least 0, within 292 years"),
        ({"timestamp": 1e300}, "timestamp: 1e+300 is out of range: must be at least 0, within 292 years"),
        ({"timestamp": 1e305}, "timestamp: 1e+305 is out of range: must be at least 0, within 292 years"),
        ({"input_length": 40.0}, "input_length: must be a whole number, not 40.0"),
        ({"input_length": -1}, "input_length: -1 is out of range: must be at least 0"),
        ({"output_length": "7"}, "output_length: must be a whole number, not '7'"),
        ({"output_length": False}, "output_length: must be a whole number, not false"),
        ({"hash_ids": 4}, "hash_ids: must be a list of whole numbers, not 4"),
        ({"hash_ids": [4, 0, "9"]}, "hash_ids: must be a list of whole numbers, not [4, 0, '9']"),
        ({"hash_ids": [4, 0, -9]}, "hash_ids: -9 is out of range: must be at least 0"),
        ({"hash_ids": [4, 0]}, "hash_ids: has 2 ids, but 40 tokens in blocks of 16 need 3"),
        ({"hash_ids": []}, "hash_ids: has 0 ids, but 40 tokens in blocks of 16 need 3"),
        ({"session": [1]}, "session: must be text or a whole number, not [1]"),
    ],
)
def test_bad_field_is_told_by_line_and_name(tmp_path: Path, changes: dict[str, object], says: str) -> None:
    assert complaint(tmp_path, row_text() + row_text(**changes)) == f"line 2: {says}"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"timestamp": 0, "input_len', "line 2: is not JSON: "),
        ("0,374,44", "line 2: is not JSON: "),
        (
            "[1, 2]",
            "line 2: must be an object with timestamp, input_length, output_length, hash_ids, not [1, 2]",
        ),
        ("9" * 5000, "line 2: is not JSON: "),
        ("[" * 100_000, "line 2: is not JSON: "),
    ],
)
def test_line_that_is_no_object_is_an_error(tmp_path: Path, line: str, says: str) -> None:
    assert complaint(tmp_path, row_text() + line).startswith(says)


@pytest.mark.parametrize(
    ("name", "block_tokens", "num_rows", "mean_input", "mean_output"),
    [
        ("mooncake/conversation_trace.jsonl.gz", 512, 12_031, 12_035, 343),
        ("mooncake/synthetic_trace.jsonl.gz", 512, 3_993, 15_325, 149),
        ("lmcache-agent/miniswe_hashed16.jsonl.gz", 16, 402, 6_175, 110),
    ],
)
def test_public_traces_have_the_counts_and_means_that_are_known(
    name: str, block_tokens: int, num_rows: int, mean_input: int, mean_output: int
) -> None:
    rows = list(read_hash_ids(shared("traces", name), block_tokens))
    assert len(rows) == num_rows
    assert round(sum(row.prompt.num_tokens for row in rows) / num_rows) == mean_input
    assert round(sum(row.output_tokens for row in rows) / num_rows) == mean_output
