"""Objects of a JSON file come one at a time, however they are laid out; a broken one is told by its number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.traces import reading
from llmsim.scenarios.traces.elements import read_elements
from llmsim.tests.support.scenario_files import write_trace

OBJECTS: list[dict[str, Any]] = [
    {"id": index, "text": 'a "quoted" word, ]}[{ and ünï\u2028cödé \\ ' * index, "deep": [{"x": [1.5, None, True]}]}
    for index in range(40)
]


def read(folder: Path, text: str) -> list[Any]:
    return [value for _, value in read_elements(write_trace(folder, text), "thing")]


def complaint(folder: Path, text: str) -> str:
    with pytest.raises(ScenarioError) as caught:
        read(folder, text)
    return str(caught.value).removeprefix(f"{folder / 'trace'}: ")


@pytest.mark.parametrize("num_bytes", [1, 7, 64, 1 << 16])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_layout_and_the_borders_of_reading_do_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, num_bytes: int, ascii_only: bool
) -> None:
    chunks = reading.read_chunks
    monkeypatch.setattr("llmsim.scenarios.traces.elements.read_chunks", lambda path: chunks(path, num_bytes))
    for text in (
        json.dumps(OBJECTS, ensure_ascii=ascii_only),
        "\ufeff \n" + json.dumps(OBJECTS, indent=2, ensure_ascii=ascii_only) + "\n\n",
        "".join(json.dumps(value, ensure_ascii=ascii_only) + "\r\n" for value in OBJECTS),
    ):
        assert read(tmp_path, text) == OBJECTS


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the trace is empty"),
        (" \n ", "the trace is empty"),
        ("[]", "the trace is empty"),
        ('[{"a": 1}, 5]', "thing 2: must be an object, not '5]'"),
        ('[{"a": 1}, [2]]', "thing 2: must be an object, not '[2]]'"),
        ("null", "thing 1: must be an object, not 'null'"),
        ('[{"a": 1}, {"b": 2', "thing 2: is not JSON: Expecting ',' delimiter"),
        ('[{"a": 1}, {"b": "cut in a str', "thing 2: is not JSON: Unterminated string starting at"),
        ('[{"a": 1}', "thing 2: is missing: the file ends inside the array"),
        ('{"a": 1}\n{"b": 2, }\n', "thing 2: is not JSON: "),
        ('[{"a": 1}] {"b": 2}', "goes on after the end of the array: '{\"b\": 2}'"),
        ('{"a": ' + "[" * 100_000, "thing 1: is not JSON: "),
    ],
)
def test_broken_object_is_told_by_its_number(tmp_path: Path, text: str, says: str) -> None:
    assert complaint(tmp_path, text).startswith(says)


def test_a_mistake_at_the_beginning_does_not_read_the_whole_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = []
    chunks = reading.read_chunks

    def counted(path: Path) -> Any:
        for chunk in chunks(path, 1000):
            taken.append(chunk)
            yield chunk

    monkeypatch.setattr("llmsim.scenarios.traces.elements.read_chunks", counted)
    assert complaint(tmp_path, '[{"a": x}, ' + '{"b": 1},' * 100_000).startswith("thing 1: is not JSON: ")
    assert len(taken) == 1
