"""Azure's CSV becomes rows on the calendar; a bad row is told by file, line and column."""

from __future__ import annotations

from pathlib import Path

import pytest

from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.traces.azure import read_azure
from llmsim.tests.support.scenario_files import write_trace
from llmsim.tests.support.shared import shared

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
TIME = "2023-11-16 18:15:46.6805900"


def complaint(folder: Path, text: str) -> str:
    path = write_trace(folder, text)
    with pytest.raises(ScenarioError) as caught:
        list(read_azure(path))
    return str(caught.value).removeprefix(f"{path}: ")


def times_ns(folder: Path, *times: str) -> list[int]:
    rows = "".join(f"{time},1,1\n" for time in times)
    return [row.time_ns for row in read_azure(write_trace(folder, HEADER + rows))]


def test_row_is_a_prompt_of_its_own_and_an_output(tmp_path: Path) -> None:
    first, second = read_azure(write_trace(tmp_path, HEADER + f"{TIME},374,44\r\n{TIME},374,0\r\n"))
    assert (first.prompt.num_tokens, first.output_tokens) == (374, 44)
    assert first.prompt.contents != second.prompt.contents
    assert second.output_tokens == 0


def test_seven_decimals_are_read_to_the_hundred_nanoseconds(tmp_path: Path) -> None:
    first, second = times_ns(tmp_path, "2023-11-16 18:15:46.6805900", "2023-11-16 18:15:46.6805901")
    assert second - first == 100


def test_times_cross_midnight_months_and_leap_days(tmp_path: Path) -> None:
    times = ("2024-02-28 23:59:59.9", "2024-02-29 00:00:00", "2024-03-01T00:00:00.000000001")
    first, second, third = times_ns(tmp_path, *times)
    assert second - first == 100_000_000
    assert third - second == 86_400_000_000_001


def test_time_zones_are_taken_off(tmp_path: Path) -> None:
    times = (
        "2024-05-10 00:00:00",
        "2024-05-10 00:00:00Z",
        "2024-05-10 02:00:00+02:00",
        "2024-05-09 19:00:00-05:00",
    )
    assert len(set(times_ns(tmp_path, *times))) == 1


def test_columns_are_found_by_name(tmp_path: Path) -> None:
    text = f"GeneratedTokens,Region,TIMESTAMP,ContextTokens\n7,west,{TIME},5\n"
    (row,) = read_azure(write_trace(tmp_path, text))
    assert (row.prompt.num_tokens, row.output_tokens) == (5, 7)


@pytest.mark.parametrize(
    "time",
    [
        "NaN",
        "",
        "-1",
        "1700000000",
        "2023-02-29 00:00:00",
        "2023-11-16 24:00:00",
        "2023-11-16 18:61:00",
        "2023-11-16",
    ],
)
def test_bad_time_is_told_by_line_and_column(tmp_path: Path, time: str) -> None:
    says = f"line 3: TIMESTAMP: must be a time such as 2023-11-16 18:15:46.6805900, not {time!r}"
    assert complaint(tmp_path, HEADER + f"{TIME},1,1\n{time},1,1\n") == says


@pytest.mark.parametrize("cell", ["-5", "1.5", "nan", "", "x", "1_000", "٣", "9" * 30])
def test_bad_count_is_told_by_line_and_column(tmp_path: Path, cell: str) -> None:
    says = "must be a whole number of at least 0, not"
    assert complaint(tmp_path, HEADER + f"{TIME},{cell},1\n").startswith(f"line 2: ContextTokens: {says}")
    assert complaint(tmp_path, HEADER + f"{TIME},1,{cell}\n").startswith(f"line 2: GeneratedTokens: {says}")


def test_row_cut_short_is_an_error(tmp_path: Path) -> None:
    assert complaint(tmp_path, HEADER + f"{TIME},1,1\n2023-11-16 18:1") == (
        "line 3: has 1 columns, but the header has 3"
    )


def test_missing_column_is_an_error(tmp_path: Path) -> None:
    assert complaint(tmp_path, f"TIMESTAMP,ContextTokens\n{TIME},1\n") == (
        "line 1: GeneratedTokens: is missing; the header must hold TIMESTAMP, ContextTokens, GeneratedTokens"
    )


def test_trace_with_a_header_alone_is_an_error(tmp_path: Path) -> None:
    assert complaint(tmp_path, HEADER) == "the trace has a header but no rows"


@pytest.mark.parametrize(
    ("kind", "num_rows", "mean_input", "mean_output"),
    [("code", 8_819, 2_048, 28), ("conv", 19_366, 1_155, 211)],
)
def test_public_traces_have_the_counts_and_means_that_are_known(
    kind: str, num_rows: int, mean_input: int, mean_output: int
) -> None:
    rows = list(read_azure(shared("traces", "azure", f"AzureLLMInferenceTrace_{kind}_2023.csv.gz")))
    assert len(rows) == num_rows
    assert round(sum(row.prompt.num_tokens for row in rows) / num_rows) == mean_input
    assert round(sum(row.output_tokens for row in rows) / num_rows) == mean_output
