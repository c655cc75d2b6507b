"""What is true of every format's reader: a file that is missing, empty, cut or not text is one line with its name."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llmsim.policies.core.request import Arrival
from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.schema_workload import UNTIMED_FORMATS, TraceSettings
from llmsim.scenarios.workloads.building import play_trace
from llmsim.tests.support.scenario_files import write_trace


def _block_row(index: int, prompt: int, output: int) -> str:
    ids = [index * 10_000 + block for block in range(-(-prompt // 16))]
    return json.dumps({"timestamp": index, "input_length": prompt, "output_length": output, "hash_ids": ids}) + "\n"


def _mooncake(index: int, prompt: int, output: int) -> str:
    ids = [index * 10_000 + block for block in range(-(-prompt // 512))]
    return json.dumps({"timestamp": index, "input_length": prompt, "output_length": output, "hash_ids": ids}) + "\n"


def _bailian(index: int, prompt: int, output: int) -> str:
    return json.dumps({"chat_id": index, "parent_chat_id": -1} | json.loads(_block_row(index, prompt, output))) + "\n"


def _sharegpt(index: int, prompt: int, output: int) -> str:
    turns = [{"from": "human", "value": "word" * prompt}, {"from": "gpt", "value": "word" * output}]
    return json.dumps({"id": f"c{index}", "conversations": turns}) + "\n"


def _weka(index: int, prompt: int, output: int) -> str:
    call = {"t": 0.0, "type": "n", "in": prompt, "out": output, "hash_ids": list(range(-(-prompt // 64)))}
    return json.dumps({"id": f"s{index}", "requests": [call]}) + "\n"


ROWS: dict[str, Callable[[int, int, int], str]] = {
    "azure": lambda index, prompt, output: f"2023-11-16 18:15:{index:02d},{prompt},{output}\n",
    "bailian": _bailian,
    "burstgpt": lambda index, prompt, output: f"{index},{prompt},{output}\n",
    "custom": lambda index, prompt, output: json.dumps({"prompt": "word" * prompt, "output_tokens": output}) + "\n",
    "hash_ids": _block_row,
    "mooncake": _mooncake,
    "sharegpt": _sharegpt,
    "weka": _weka,
}
HEADERS = {
    "azure": "TIMESTAMP,ContextTokens,GeneratedTokens\n",
    "burstgpt": "Timestamp,Request tokens,Response tokens\n",
}
FORMATS = sorted(ROWS)


def text_of(form: str, *lengths: tuple[int, int]) -> str:
    """A trace with rows of these prompts and outputs, one a time unit."""
    rows = (ROWS[form](index, prompt, output) for index, (prompt, output) in enumerate(lengths))
    return HEADERS.get(form, "") + "".join(rows)


def play(form: str, path: Path, **keys: Any) -> list[Arrival]:
    given = {"type": "trace", "path": "x", "format": form} | ({"rate": 2.0} if form in UNTIMED_FORMATS else {}) | keys
    return list(play_trace(TraceSettings.model_validate(given), path, 0, lambda text: None).arrivals())


def complaint(form: str, path: Path) -> str:
    with pytest.raises(ScenarioError) as caught:
        play(form, path)
    said = str(caught.value)
    assert "\n" not in said
    assert said.startswith(f"{path}: ")
    return said.removeprefix(f"{path}: ")


def test_all_formats_are_tried() -> None:
    assert tuple(FORMATS) == tuple(sorted(TraceSettings.model_fields["format"].annotation.__args__))  # type: ignore[union-attr]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("packed", [False, True])
def test_lengths_are_those_of_the_file(tmp_path: Path, form: str, packed: bool) -> None:
    played = play(form, write_trace(tmp_path, text_of(form, (40, 7), (600, 1)), packed))
    assert [arrival.request.prompt.num_tokens for arrival in played] == [40, 600]
    assert [arrival.output.length for arrival in played] == [7, 1]
    assert [arrival.refusal for arrival in played] == [None, None]


@pytest.mark.parametrize("form", FORMATS)
def test_rows_without_prompt_or_output_are_refused_and_not_dropped(tmp_path: Path, form: str) -> None:
    played = play(form, write_trace(tmp_path, text_of(form, (0, 7), (40, 0), (40, 7))))
    assert [arrival.refusal for arrival in played] == ["the prompt is empty", "the output is empty", None]


@pytest.mark.parametrize("form", FORMATS)
def test_limit_plays_the_first_rows(tmp_path: Path, form: str) -> None:
    path = write_trace(tmp_path, text_of(form, (40, 7), (50, 1), (60, 1)))
    assert [arrival.request.prompt.num_tokens for arrival in play(form, path, limit=2)] == [40, 50]


@pytest.mark.parametrize("form", FORMATS)
def test_rate_is_the_mean_rate_of_the_rows_played(tmp_path: Path, form: str) -> None:
    path = write_trace(tmp_path, text_of(form, *[(40, 7)] * 30))
    keys = {"arrivals": "constant"} if form in UNTIMED_FORMATS else {}
    times = [arrival.time_ns for arrival in play(form, path, rate=0.8, limit=21, **keys)]
    assert times == sorted(times)
    assert times[-1] - times[0] == pytest.approx(20 / 0.8 * 1e9, abs=2)


@pytest.mark.parametrize("form", FORMATS)
def test_missing_file_is_an_error(tmp_path: Path, form: str) -> None:
    assert complaint(form, tmp_path / "none") == "the trace cannot be read: No such file or directory"


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("text", ["", " \n\n"])
def test_empty_file_is_an_error(tmp_path: Path, form: str, text: str) -> None:
    assert complaint(form, write_trace(tmp_path, text)) == "the trace is empty"


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("keep", [10, 60, -9])
def test_truncated_gzip_is_an_error(tmp_path: Path, form: str, keep: int) -> None:
    path = tmp_path / "trace"
    path.write_bytes(gzip.compress(text_of(form, *[(40, 7)] * 50).encode(), mtime=0)[:keep])
    assert "the gzip is truncated or damaged" in complaint(form, path)


@pytest.mark.parametrize("form", FORMATS)
def test_bytes_that_are_not_utf8_are_an_error(tmp_path: Path, form: str) -> None:
    path = tmp_path / "trace"
    path.write_bytes(text_of(form, (40, 7)).encode() + b"\xff\xfe\n")
    assert "byte 0xff" in complaint(form, path)
    assert complaint(form, path).endswith("is not UTF-8")
