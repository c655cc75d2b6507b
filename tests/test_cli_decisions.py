"""`llmsim decisions`: prints what the core decides, compares it with a log, and says what is wrong with a case."""

from __future__ import annotations

import copy
import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from llmsim.tests.support.command_line import llmsim
from llmsim.tests.support.golden import GOLDEN, golden_case

Capture = pytest.CaptureFixture[str]

VLLM = GOLDEN / "vllm"
SMALL: dict[str, Any] = {
    "config": {"num_blocks": 10},
    "requests": [{"id": "a", "arrival_step": 0, "prompt_token_ids": [1, 2, 3], "output_len": 2}],
    "log": [],
}


def changed(config: dict[str, Any] | None = None, request: dict[str, Any] | None = None, **keys: Any) -> dict[str, Any]:
    """The small case with other values."""
    case = copy.deepcopy(SMALL)
    case["config"] |= config or {}
    case["requests"][0] |= request or {}
    return case | keys


def write(folder: Path, case: object) -> Path:
    path = folder / "case.json"
    path.write_bytes(case if isinstance(case, bytes) else json.dumps(case).encode())
    return path


def test_the_log_is_printed_one_json_object_a_step(capsys: Capture) -> None:
    done = llmsim(capsys, "decisions", VLLM / "crowded.json.gz")
    assert (done.code, done.err) == (0, "")
    log = golden_case("vllm", "crowded")["log"]
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert [{key: line[key] for key in want} for line, want in zip(lines, log, strict=True)] == log


def test_output_goes_to_a_file_that_holds_the_same(tmp_path: Path, capsys: Capture) -> None:
    printed = llmsim(capsys, "decisions", VLLM / "edge00.json.gz")
    done = llmsim(capsys, "decisions", VLLM / "edge00.json.gz", "-o", tmp_path / "log.jsonl")
    assert (done.code, done.out) == (0, "")
    assert (tmp_path / "log.jsonl").read_text() == printed.out != ""
    assert os.listdir(tmp_path) == ["log.jsonl"]


@pytest.mark.parametrize("name", ["async-tight", "spec4-tight", "priority-tight"])
def test_check_of_a_golden_case_exits_0(capsys: Capture, name: str) -> None:
    done = llmsim(capsys, "decisions", VLLM / f"{name}.json.gz", "--check")
    assert (done.code, done.out) == (0, "")
    assert done.err.endswith(f"{len(golden_case('vllm', name)['log']):,} steps are identical\n")


@pytest.mark.parametrize("key", ["scheduled", "free_blocks", "num_waiting", "finished", "prefix_hits"])
def test_check_of_another_log_exits_1_and_names_step_key_and_values(tmp_path: Path, capsys: Capture, key: str) -> None:
    case = golden_case("vllm", "crowded")
    line = case["log"][17]
    right = line[key]
    line[key] = right + 1 if isinstance(right, int) else [*right, "x"]
    done = llmsim(capsys, "decisions", write(tmp_path, case), "--check")
    assert (done.code, done.out) == (1, "")
    assert done.err == f"{tmp_path}/case.json: step {line['step']}: {key}: want {line[key]!r}, got {right!r}\n"


@pytest.mark.parametrize(("kept", "says"), [(slice(0, -1), "the log goes on to"), (slice(0, 0), "want 0 lines")])
def test_check_of_a_shorter_log_exits_1(tmp_path: Path, capsys: Capture, kept: slice, says: str) -> None:
    case = golden_case("vllm", "crowded")
    case["log"] = case["log"][kept]
    done = llmsim(capsys, "decisions", write(tmp_path, case), "--check")
    assert done.code == 1
    assert says in done.err


@pytest.mark.parametrize(
    ("case", "says"),
    [
        (b"", "not a JSON case: "),
        (b'{"config": {', "not a JSON case: "),
        (b"\xff\xfe\xfa", "not a JSON case: "),
        (b"[" * 100_000, "not a JSON case: "),
        (gzip.compress(json.dumps(SMALL).encode(), mtime=0)[:-9], "not a JSON case: "),
        ([], "not a JSON object"),
        ({"config": {}}, "requests: is missing"),
        (changed({"num_block": 3}), "config.num_block: unknown key; choose "),
        (changed({"num_blocks": "3"}), "config.num_blocks: '3' is not of the type of 1000"),
        (changed({"num_blocks": True}), "config.num_blocks: True is not of the type of 1000"),
        (changed({"block_size": 16.0}), "config.block_size: 16.0 is not of the type of 16"),
        (changed({"max_num_seqs": None}), "config.max_num_seqs: None is not of the type of 1024"),
        (changed({"enable_prefix_caching": 1}), "config.enable_prefix_caching: 1 is not of the type of True"),
        (changed({"watermark": "a"}), "config.watermark: 'a' is not of the type of 0.0"),
        (changed({"watermark": 1}), "watermark: 1 is out of range"),
        (changed({"num_blocks": 1}), "num_blocks: 1 is out of range; at least 2"),
        (changed({"policy": "lifo"}), "config.policy: 'lifo' is unknown; choose fcfs, priority"),
        (changed({"num_blocks": 2}, {"prompt_token_ids": [1] * 99}), "request a: prompt and max_tokens (101) need 7"),
        (changed(None, {"prompt_token_ids": []}), "request a: the prompt is empty"),
        (changed(None, {"output_len": 0}), "request a: max_tokens is 0"),
        (changed(None, {"arrival_step": -1}), "requests[0].arrival_step: -1 is negative"),
        (changed({"num_speculative_tokens": 2}, {"accept": [1, -1]}), "requests[0].accept: -1 is negative"),
        (changed(None, {"colour": 1}), "requests[0].colour: unknown key; choose "),
        (changed(requests=[{"id": "a"}]), "requests[0].arrival_step: is missing"),
        (changed(requests=SMALL["requests"] * 2), "requests[1].id: 'a' is there twice"),
        ({key: SMALL[key] for key in ("config", "requests")}, "log: is missing; --check compares with it"),
        (changed(log=5), "log: is not a list of steps"),
        (changed(log=[{"stop": 1}]), "log[0]: is not an object with a step"),
    ],
)
def test_a_broken_case_is_one_line(tmp_path: Path, capsys: Capture, case: object, says: str) -> None:
    path = write(tmp_path, case)
    done = llmsim(capsys, "decisions", path, "--check")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: {path}: {says}")
    assert len(done.err.splitlines()) == 1


def test_a_case_that_is_not_there_is_one_line(tmp_path: Path, capsys: Capture) -> None:
    done = llmsim(capsys, "decisions", tmp_path / "none.json")
    assert (done.code, done.out) == (2, "")
    assert done.err == f"error: {tmp_path}/none.json: No such file or directory\n"


@pytest.mark.parametrize("output", ["case.json/log", "none/log", "."])
def test_a_log_that_cannot_be_written_is_one_line(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = llmsim(capsys, "decisions", write(tmp_path, SMALL), "-o", output)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: {output}: cannot be written: ")
    assert os.listdir(tmp_path) == ["case.json"]


def test_half_a_log_is_not_left_behind(tmp_path: Path, capsys: Capture) -> None:
    never = {"id": "b", "arrival_step": 1, "prompt_token_ids": [1] * 500, "output_len": 1}
    case = changed(requests=[*SMALL["requests"], never])
    done = llmsim(capsys, "decisions", write(tmp_path, case), "-o", tmp_path / "log.jsonl")
    assert done.code == 2
    assert "request b: " in done.err
    assert os.listdir(tmp_path) == ["case.json"]


@pytest.mark.skipif(not Path("/dev/null").is_char_device(), reason="has no /dev/null")
def test_a_device_is_written_to_and_not_replaced(capsys: Capture) -> None:
    case = GOLDEN / "vllm" / "edge02.json.gz"
    assert llmsim(capsys, "decisions", case, "-o", "/dev/null").code == 0
    assert Path("/dev/null").is_char_device()
    full = llmsim(capsys, "decisions", case, "-o", "/dev/full")
    assert (full.code, full.err) == (2, "error: /dev/full: cannot be written: No space left on device\n")


def test_idle_steps_take_no_time_and_leave_no_line(tmp_path: Path, capsys: Capture) -> None:
    request = {"prompt_token_ids": [1, 2, 3], "output_len": 1}
    requests = [{"id": "a", "arrival_step": 0, **request}, {"id": "b", "arrival_step": 10**9, **request}]
    case = tmp_path / "case.json"
    case.write_text(json.dumps({"config": {}, "requests": requests}))
    lines = [json.loads(line) for line in llmsim(capsys, "decisions", case).out.splitlines()]
    assert [line["step"] for line in lines] == [0, 1, 10**9, 10**9 + 1]
