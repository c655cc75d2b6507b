"""Texts become prompts of estimated length whose equal beginnings are equal tokens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.traces.custom import read_custom
from llmsim.scenarios.traces.rows import TraceRow
from llmsim.scenarios.traces.text import TextPrompt, estimated_tokens
from llmsim.tests.support.scenario_files import write_trace


def read(folder: Path, *rows: object, chars_per_token: float = 4.0) -> list[TraceRow]:
    return list(read_custom(write_trace(folder, "".join(json.dumps(row) + "\n" for row in rows)), chars_per_token))


def complaint(folder: Path, text: str) -> str:
    path = write_trace(folder, text)
    with pytest.raises(ScenarioError) as caught:
        list(read_custom(path, 4.0))
    return str(caught.value).removeprefix(f"{path}: ")


@pytest.mark.parametrize(
    ("chars", "chars_per_token", "tokens"), [(0, 4, 0), (1, 4, 1), (400, 4, 100), (401, 4, 101), (70, 3.5, 20)]
)
def test_a_text_counts_as_its_characters_over_characters_a_token(
    tmp_path: Path, chars: int, chars_per_token: float, tokens: int
) -> None:
    (row,) = read(tmp_path, {"prompt": "é" * chars, "output_tokens": 5}, chars_per_token=chars_per_token)
    assert row.prompt.num_tokens == tokens == estimated_tokens("é" * chars, chars_per_token)
    assert (row.output_tokens, row.time_ns) == (5, 0)


@pytest.mark.parametrize(("common", "shared"), [(640, 160), (639, 144), (63, 0), (64, 16)])
def test_prompts_share_whole_pieces_of_their_common_beginning(tmp_path: Path, common: int, shared: int) -> None:
    start = "".join(chr(97 + index % 23) for index in range(common))
    one, two = (
        row.prompt.spans()
        for row in read(tmp_path, *({"prompt": start + end, "output_tokens": 1} for end in ("X" * 90, "Y" * 90)))
    )
    alike = [a for a, b in zip(one, two, strict=True) if a == b]
    assert sum(length for _, _, length in alike) == shared
    assert alike == one[: len(alike)]


def test_equal_pieces_after_different_beginnings_are_not_equal() -> None:
    one, two = TextPrompt(), TextPrompt()
    one.add_text("a" * 64 + "c" * 64)
    two.add_text("b" * 64 + "c" * 64)
    assert not set(one.spans) & set(two.spans)
    three = TextPrompt()
    three.add_text("a" * 64)
    three.add_answer(-1, 9)
    three.add_text("c" * 64)
    assert [span for span in three.spans if span in one.spans] == one.spans[:1]
    assert three.spans[1] == (-1, 0, 9)


def test_names_of_content_are_the_same_in_every_process() -> None:
    prompt = TextPrompt()
    prompt.add_text("the same text")
    assert prompt.spans == [(4881550013952766162, 0, 4)]


def test_half_a_surrogate_pair_is_a_character_like_others(tmp_path: Path) -> None:
    path = write_trace(tmp_path, '{"prompt": "\\ud800abc", "output_tokens": 1}\n')
    assert next(read_custom(path, 4.0)).prompt.num_tokens == 1


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"prompt": "a"}', "line 2: output_tokens: is missing"),
        ('{"output_tokens": 1}', "line 2: prompt: is missing"),
        ('{"prompt": 5, "output_tokens": 1}', "line 2: prompt: must be text, not 5"),
        ('{"prompt": "a", "output_tokens": NaN}', "line 2: output_tokens: must be a whole number, not nan"),
        ('{"prompt": "a", "output_tokens": -1}', "line 2: output_tokens: -1 is out of range: must be at least 0"),
        ('{"prompt": "a", "outp', "line 2: is not JSON: "),
        ("7", "line 2: must be an object with prompt, output_tokens, not 7"),
    ],
)
def test_bad_field_is_told_by_line_and_name(tmp_path: Path, line: str, says: str) -> None:
    assert complaint(tmp_path, '{"prompt": "a", "output_tokens": 1}\n' + line).startswith(says)
