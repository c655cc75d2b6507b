"""Traces that are broken stop a run with one line; odd rows are refused and counted, and the run goes on."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from llmsim.tests.support.command_line import Outcome, llmsim

Capture = pytest.CaptureFixture[str]

SCENARIO = """
name: small
model: tiny
hardware: {gpu: h100-sxm}
engine: {num_gpu_blocks_override: 101}
workload: {type: trace, path: trace, format: FORMAT}
"""
HEADER = b"TIMESTAMP,ContextTokens,GeneratedTokens\n"
AZURE_ROW = b"2023-11-16 18:15:46.6805900,100,5\n"


def mooncake(timestamp: Any = 0, prompt: int = 600, output: int = 5) -> bytes:
    ids = list(range(-(-prompt // 512)))
    fields = {"timestamp": timestamp, "input_length": prompt, "output_length": output, "hash_ids": ids}
    return json.dumps(fields).encode() + b"\n"


def play(capsys: Capture, folder: Path, form: str, raw: bytes | None, command: str = "run") -> Outcome:
    """Run, or check, a scenario that plays this trace."""
    (folder / "s.yaml").write_text(SCENARIO.replace("FORMAT", form))
    if raw is not None:
        (folder / "trace").write_bytes(raw)
    output = ["-o", folder / "out"] if command == "run" else []
    return llmsim(capsys, command, folder / "s.yaml", "--json", *output)


@pytest.mark.parametrize(
    ("form", "raw", "says"),
    [
        ("azure", None, "s.yaml: workload.path: there is no file "),
        ("azure", b"", "trace: the trace is empty"),
        ("mooncake", b"\n\n", "trace: the trace is empty"),
        ("azure", HEADER, "trace: the trace has a header but no rows"),
        ("azure", b"TIMESTAMP,Context\n" + AZURE_ROW, "trace: line 1: ContextTokens: is missing"),
        ("azure", HEADER + AZURE_ROW + b"2023-11-16 18:1", "trace: line 3: has 1 columns, but the header has 3"),
        ("mooncake", mooncake() + b'{"timestamp": 3, "inp', "trace: line 2: is not JSON: "),
        ("mooncake", mooncake() + b'{"timestamp": 3}\n', "trace: line 2: input_length: is missing"),
        ("azure", gzip.compress(HEADER + AZURE_ROW * 1000, mtime=0)[:-30], ": the gzip is truncated or damaged: "),
        ("mooncake", gzip.compress(mooncake() * 1000, mtime=0)[:60], ": the gzip is truncated or damaged: "),
        ("azure", HEADER + AZURE_ROW + b"\xff\xfe,1,2\n", "trace: line 3: byte 0xff is not UTF-8"),
        ("mooncake", mooncake() + "é\n".encode("latin-1"), "trace: line 2: byte 0xe9 is not UTF-8"),
        ("mooncake", mooncake(float("nan")), "trace: line 1: timestamp: must be a finite number, not nan"),
        ("mooncake", mooncake(float("inf")), "trace: line 1: timestamp: must be a finite number, not inf"),
        ("mooncake", mooncake() + mooncake(-1), "trace: line 2: timestamp: -1 is out of range: must be at least 0"),
        ("azure", HEADER + b"NaN,5,5\n", "trace: line 2: TIMESTAMP: must be a time such as "),
        ("azure", HEADER + b"-5,5,5\n", "trace: line 2: TIMESTAMP: must be a time such as "),
        ("azure", HEADER + b"2023-11-16 18:15:46,-5,5\n", "trace: line 2: ContextTokens: must be a whole number"),
        ("mooncake", mooncake(0, 600, -1), "trace: line 1: output_length: -1 is out of range: must be at least 0"),
        ("mooncake", mooncake(9e15), "trace: line 1: timestamp: 9000000000000000.0 is out of range"),
    ],
)
@pytest.mark.parametrize("command", ["run", "check"])
def test_a_broken_trace_is_named_with_line_and_field(
    tmp_path: Path, capsys: Capture, command: str, form: str, raw: bytes | None, says: str
) -> None:
    done = play(capsys, tmp_path, form, raw, command)
    assert done.code == 2
    assert done.out == ""
    assert len(done.err.splitlines()) == 1
    assert done.err.startswith("error: ")
    assert says in done.err
    assert set(os.listdir(tmp_path)) <= {"s.yaml", "trace"}


def test_unsorted_timestamps_are_sorted_with_a_warning(tmp_path: Path, capsys: Capture) -> None:
    times_ms = [5000, 3000, 4000, 3000]
    done = play(capsys, tmp_path, "mooncake", b"".join(mooncake(time, 600 + time // 100) for time in times_ms))
    assert done.code == 0
    first, *rest = done.err.splitlines()
    assert first == f"warning: {tmp_path}/trace: row 2: 3 of 4 rows go back in time; sorted by time"
    assert not any(line.startswith("warning") for line in rest)
    assert done.json()["num_requests"]["finished"] == 4
    sorted_rows = b"".join(mooncake(time, 600 + time // 100) for time in sorted(times_ms))
    other = tmp_path / "sorted"
    other.mkdir()
    in_order = play(capsys, other, "mooncake", sorted_rows)
    assert "warning" not in in_order.err
    assert in_order.json() == done.json()


@pytest.mark.parametrize(
    ("form", "good", "bad"),
    [
        ("azure", HEADER + AZURE_ROW, AZURE_ROW.replace(b",100,", b",0,") + AZURE_ROW.replace(b",5", b",0")),
        ("mooncake", mooncake(), mooncake(0, 0) + mooncake(1, 600, 0)),
    ],
)
def test_rows_without_prompt_or_output_are_refused_and_counted(
    tmp_path: Path, capsys: Capture, form: str, good: bytes, bad: bytes
) -> None:
    row = good.removeprefix(HEADER)
    done = play(capsys, tmp_path, form, good + bad + row)
    assert done.code == 0
    assert done.json()["num_requests"] == {"finished": 2, "refused": 2, "aborted": 0, "unfinished": 0}
    assert "2 refused" in done.err
    checked = play(capsys, tmp_path, form, good + bad + row, "check")
    assert checked.json()["num_refused"] == 2


@pytest.mark.parametrize(("prompt", "output"), [(1601, 1), (1000, 602), (10, 10**15), (40_000, 5)])
def test_a_request_that_can_never_fit_the_cache_is_refused_and_the_run_goes_on(
    tmp_path: Path, capsys: Capture, prompt: int, output: int
) -> None:
    """100 blocks of 16 tokens hold 1,600; the last output token is never written."""
    raw = mooncake(0) + mooncake(1, prompt, output) + mooncake(2, 1000, 601)
    done = play(capsys, tmp_path, "mooncake", raw)
    assert done.code == 0
    assert done.json()["num_requests"] == {"finished": 2, "refused": 1, "aborted": 0, "unfinished": 0}


def test_a_run_in_which_all_are_refused_is_a_run(tmp_path: Path, capsys: Capture) -> None:
    done = play(capsys, tmp_path, "mooncake", mooncake(0, 0) + mooncake(5, 5, 0))
    assert done.code == 0
    summary = done.json()
    assert summary["num_requests"]["refused"] == 2
    assert summary["ttft_s"] == dict.fromkeys(("mean", "p50", "p90", "p95", "p99", "max"))
    assert (tmp_path / "out" / "requests.parquet").exists()
