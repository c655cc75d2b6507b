"""BurstGPT's CSV, with and without sessions, becomes rows; a bad one is told by line and column."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.traces.burstgpt import read_burstgpt
from llmsim.tests.support.scenario_files import write_trace

HEADER = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
LONG_HEADER = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"


def row(time: str = "5", prompt: str = "472", output: str = "18") -> str:
    return f"{time},ChatGPT,{prompt},{output},490,Conversation log\n"


def complaint(folder: Path, text: str) -> str:
    path = write_trace(folder, text)
    with pytest.raises(ScenarioError) as caught:
        list(read_burstgpt(path))
    return str(caught.value).removeprefix(f"{path}: ")


def test_row_is_a_prompt_of_its_own_and_an_output_at_its_second(tmp_path: Path) -> None:
    first, second = read_burstgpt(write_trace(tmp_path, HEADER + row() + row("45.25", "472", "0")))
    assert (first.time_ns, first.prompt.num_tokens, first.output_tokens, first.session) == (5 * 10**9, 472, 18, None)
    assert first.prompt.contents != second.prompt.contents
    assert (second.time_ns, second.output_tokens) == (45_250_000_000, 0)


def test_sessions_of_the_longer_form_are_kept(tmp_path: Path) -> None:
    text = LONG_HEADER + "5.0,a1,3.5,GPT-4,10,20,30,API log\n6.0,,3.5,GPT-4,10,20,30,API log\n"
    first, second = read_burstgpt(write_trace(tmp_path, text))
    assert (first.session, second.session) == ("a1", None)
    assert first.prompt.num_tokens == 10


@pytest.mark.parametrize("time", ["nan", "inf", "-inf"])
def test_time_that_is_not_finite_is_an_error(tmp_path: Path, time: str) -> None:
    says = f"line 3: Timestamp: must be a finite number, not {time}"
    assert complaint(tmp_path, HEADER + row() + row(time)) == says


@pytest.mark.parametrize("time", ["-1", "-0.5", "1e300"])
def test_time_out_of_range_is_an_error(tmp_path: Path, time: str) -> None:
    assert "is out of range: must be at least 0, within 292 years" in complaint(tmp_path, HEADER + row(time))


@pytest.mark.parametrize("time", ["", "x", "2023-11-16 18:15:46", "1_000", "٣x"])
def test_time_that_is_no_number_is_an_error(tmp_path: Path, time: str) -> None:
    says = f"line 2: Timestamp: must be a number of seconds, not {time!r}"
    assert complaint(tmp_path, HEADER + row(time)) == says


@pytest.mark.parametrize("cell", ["-5", "1.5", "nan", "", "1_000", "9" * 30])
def test_bad_count_is_told_by_line_and_column(tmp_path: Path, cell: str) -> None:
    says = "must be a whole number of at least 0, not"
    assert complaint(tmp_path, HEADER + row(prompt=cell)).startswith(f"line 2: Request tokens: {says}")
    assert complaint(tmp_path, HEADER + row(output=cell)).startswith(f"line 2: Response tokens: {says}")


def test_missing_column_and_short_row_are_errors(tmp_path: Path) -> None:
    assert complaint(tmp_path, "Timestamp,Request tokens\n1,2\n") == (
        "line 1: Response tokens: is missing; the header must hold Timestamp, Request tokens, Response tokens"
    )
    assert complaint(tmp_path, HEADER + row() + "5,ChatG") == "line 3: has 2 columns, but the header has 6"
    assert complaint(tmp_path, HEADER) == "the trace has a header but no rows"
