"""A trace's format is told by its first line, or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.traces.guessing import guess_format
from llmsim.tests.support.scenario_files import write_trace
from llmsim.tests.support.shared import shared

HASHED = {"timestamp": 0, "output_length": 5}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("line", "form"),
    [
        ("TIMESTAMP,ContextTokens,GeneratedTokens", "azure"),
        ("Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type", "burstgpt"),
        (json.dumps(HASHED | {"input_length": 600, "hash_ids": [0, 1]}), "mooncake"),
        (json.dumps(HASHED | {"input_length": 30, "hash_ids": [0, 1]}), "hash_ids"),
        (json.dumps({"chat_id": 1, "parent_chat_id": -1, "input_length": 30, "hash_ids": [0, 1]}), "bailian"),
        (json.dumps({"prompt": "hello", "output_tokens": 3}), "custom"),
        (json.dumps({"id": "a", "conversations": []}), "sharegpt"),
    ],
)
def test_the_first_line_tells_the_format(tmp_path: Path, line: str, form: str, packed: bool) -> None:
    assert guess_format(write_trace(tmp_path, f"{line}\n", packed=packed)) == form


@pytest.mark.parametrize(
    "line",
    [
        "a,b,c",
        "{",
        "[",
        "[1]",
        "{}",
        json.dumps(HASHED | {"input_length": 9, "hash_ids": [0]}),  # one block of either size
        json.dumps(HASHED | {"input_length": 9, "hash_ids": [0, 1, 2]}),  # of neither
        json.dumps(HASHED | {"input_length": "9", "hash_ids": 0}),
    ],
)
def test_a_first_line_that_tells_nothing_asks_for_the_format(tmp_path: Path, line: str) -> None:
    path = write_trace(tmp_path, f"{line}\n")
    with pytest.raises(ScenarioError) as caught:
        guess_format(path)
    assert str(caught.value) == f"{path}: line 1: does not tell the trace's format; name it with --format"


@pytest.mark.parametrize(
    ("parts", "form"),
    [
        (("mooncake", "conversation_trace.jsonl.gz"), "mooncake"),
        (("mooncake", "synthetic_trace.jsonl.gz"), "mooncake"),
        (("azure", "AzureLLMInferenceTrace_code_2023.csv.gz"), "azure"),
        (("lmcache-agent", "miniswe_hashed16.jsonl.gz"), "hash_ids"),
    ],
)
def test_published_traces_are_told(parts: tuple[str, ...], form: str) -> None:
    assert guess_format(shared("traces", *parts)) == form
