"""Traces are read as lines, packed or not, and a bad file is told by file and line."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from llmsim.scenarios.errors import ScenarioError
from llmsim.scenarios.traces.reading import read_lines
from llmsim.tests.support.scenario_files import write_trace

TEXT = "".join(f"line {number} of a trace, long enough to fill some blocks\n" for number in range(1, 3001))


def complaint(path: Path) -> str:
    with pytest.raises(ScenarioError) as caught:
        list(read_lines(path))
    text = str(caught.value)
    assert "\n" not in text
    return text.removeprefix(f"{path}: ")


def test_gzip_is_told_by_its_first_bytes_not_by_its_name(tmp_path: Path) -> None:
    plain = list(read_lines(write_trace(tmp_path, TEXT)))
    assert list(read_lines(write_trace(tmp_path, TEXT, packed=True))) == plain
    assert plain[2] == (3, "line 3 of a trace, long enough to fill some blocks")
    assert len(plain) == 3000


def test_blank_lines_and_windows_line_ends_are_left_out_but_counted(tmp_path: Path) -> None:
    path = write_trace(tmp_path, "\ufeffa\r\n\r\n\r\nb\r\n\n")
    assert list(read_lines(path)) == [(1, "a"), (4, "b")]


def test_missing_file_is_an_error(tmp_path: Path) -> None:
    assert complaint(tmp_path / "none") == "the trace cannot be read: No such file or directory"


def test_folder_is_an_error(tmp_path: Path) -> None:
    assert complaint(tmp_path) == "the trace cannot be read: Is a directory"


@pytest.mark.parametrize("text", ["", "\n", "  \n\n"])
@pytest.mark.parametrize("packed", [False, True])
def test_empty_file_is_an_error(tmp_path: Path, text: str, packed: bool) -> None:
    assert complaint(write_trace(tmp_path, text, packed)) == "the trace is empty"


def test_truncated_gzip_is_an_error_after_the_lines_that_are_whole(tmp_path: Path) -> None:
    path = write_trace(tmp_path, TEXT, packed=True)
    path.write_bytes(path.read_bytes()[:-200])
    text = complaint(path)
    assert "the gzip is truncated or damaged" in text
    line = int(text.removeprefix("line ").partition(":")[0])
    assert 1 < line <= 3000


@pytest.mark.parametrize("keep", [2, 5, 10, 15])
def test_gzip_cut_in_its_header_is_an_error(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "trace"
    path.write_bytes(gzip.compress(TEXT.encode())[:keep])
    assert complaint(path).startswith("line 1: the gzip is truncated or damaged")


def test_damaged_gzip_is_an_error(tmp_path: Path) -> None:
    path = write_trace(tmp_path, TEXT, packed=True)
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 0xFF
    path.write_bytes(raw)
    assert "the gzip is truncated or damaged" in complaint(path)


@pytest.mark.parametrize("packed", [False, True])
def test_bytes_that_are_not_utf8_are_an_error_with_their_line(tmp_path: Path, packed: bool) -> None:
    raw = b"one\ntwo\nthr\xff\xfe\n"
    path = tmp_path / "trace"
    path.write_bytes(gzip.compress(raw) if packed else raw)
    assert complaint(path) == "line 3: byte 0xff is not UTF-8"
