"""`llmsim replay`: a run's journal gives the same plans and token times; one that was tampered with does not."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llmsim.scenarios.assembly import assemble
from llmsim.scenarios.loading import load_scenario
from llmsim.scenarios.run import run_into
from llmsim.tests.support.command_line import llmsim
from llmsim.tests.support.scenario_files import BUSY, write_scenario

Capture = pytest.CaptureFixture[str]
Entry = dict[str, Any]


@pytest.fixture(scope="module", params=[True, False], ids=["depth 2", "depth 1"])
def journal(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The journal of a run with preemptions, prefix hits and chunked prompts."""
    folder = tmp_path_factory.mktemp("busy")
    settings = [f"engine.async_scheduling={str(request.param).lower()}", "workload.requests=150"]
    scenario = load_scenario(write_scenario(folder, BUSY), settings)
    summary = run_into(assemble(scenario), folder / "out", journal=True, warn=print)
    assert summary["num_preemptions"] > 0
    return folder / "out" / "journal.jsonl.gz"


@pytest.fixture(scope="module")
def entries(journal: Path) -> list[Entry]:
    return [json.loads(line) for line in gzip.decompress(journal.read_bytes()).splitlines()]


def write(folder: Path, entries: list[Entry]) -> Path:
    path = folder / "journal.jsonl.gz"
    path.write_bytes(gzip.compress(b"".join(json.dumps(entry).encode() + b"\n" for entry in entries), 1))
    return path


def test_the_journal_of_a_run_is_replayed_alike(journal: Path, entries: list[Entry], capsys: Capture) -> None:
    done = llmsim(capsys, "replay", journal, "--json")
    assert done.code == 0
    num_plans = sum(entry.get("call") == "plan" for entry in entries)
    assert done.json() == {"identical": True, "difference": None, "num_plans": num_plans, "num_finished": 150}
    assert done.err == f"{num_plans:,} plans and 150 finished requests are identical\n"
    quiet = llmsim(capsys, "replay", journal)
    assert (quiet.code, quiet.out) == (0, "")


def last_of(call: str, key: str, entries: list[Entry]) -> int:
    return max(i for i, entry in enumerate(entries) if entry.get("call") == call and key in entry)


def another_digest(entries: list[Entry]) -> int:
    at = last_of("plan", "digest", entries)
    entries[at]["digest"] = "0" * 16
    return at


def another_token_time(entries: list[Entry]) -> int:
    at = last_of("commit", "finished", entries)
    entries[at]["finished"][0][2] += 1
    return at


def one_finish_less(entries: list[Entry]) -> int:
    at = last_of("commit", "finished", entries)
    entries[at]["finished"] = []
    return at


def a_longer_prompt(entries: list[Entry]) -> int:
    at = last_of("add", "spans", entries)
    entries[at]["spans"][-1][2] += 1
    return at + 1


def fewer_blocks(entries: list[Entry]) -> int:
    entries[0]["config"]["num_blocks"] -= 1
    return 2


def a_missing_plan(entries: list[Entry]) -> int:
    at = last_of("plan", "digest", entries)
    del entries[at]
    return at


@pytest.mark.parametrize(
    "tamper",
    [another_digest, another_token_time, one_finish_less, a_longer_prompt, fewer_blocks, a_missing_plan],
    ids=lambda tamper: tamper.__name__,
)
def test_a_journal_that_was_tampered_with_exits_1(
    tmp_path: Path, capsys: Capture, entries: list[Entry], tamper: Callable[[list[Entry]], int]
) -> None:
    entries = copy.deepcopy(entries)
    earliest = tamper(entries)
    path = write(tmp_path, entries)
    done = llmsim(capsys, "replay", path, "--json")
    assert done.code == 1
    lines = done.err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith(f"{path}: line ")
    assert int(lines[0].removeprefix(f"{path}: line ").split(":")[0]) >= earliest + 1
    assert done.json()["identical"] is False
    assert f"{path}: {done.json()['difference']}" == lines[0]


@pytest.mark.parametrize(
    ("at", "change"),
    [
        (0, {"format": 99}),
        (0, {"config": 5}),
        (0, {"config": {}}),
        (0, {"config": {"num_blocks": "a"}}),
        (0, {"policies": {}}),
        (0, {"policies": 5}),
        (1, {"spans": 5}),
        (1, {"spans": [[1]]}),
        (1, {"spans": [[1, 0, -5]]}),
        (1, {"max_tokens": None}),
        (2, {"call": "plam"}),
        (2, {"now_ns": "noon"}),
        (2, {"call": "add"}),
    ],
)
def test_a_malformed_entry_is_one_line(
    tmp_path: Path, capsys: Capture, entries: list[Entry], at: int, change: Entry
) -> None:
    changed = [*entries[:at], entries[at] | change, *entries[at + 1 :]]
    done = llmsim(capsys, "replay", write(tmp_path, changed))
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: {tmp_path}/journal.jsonl.gz: line {at + 1}: ")
    assert len(done.err.splitlines()) == 1


def test_calls_that_cannot_follow_are_one_line(tmp_path: Path, capsys: Capture, entries: list[Entry]) -> None:
    first_plan = next(i for i, entry in enumerate(entries) if entry.get("call") == "plan")
    depth = entries[0]["config"]["depth"]
    plans = [entry for entry in entries if entry.get("call") == "plan"][: depth + 1]
    for changed, says in (
        ([*entries[:2], entries[1]], f"a second request {entries[1]['id']}"),
        ([*entries[:first_plan], *plans], "a plan too many in flight"),
    ):
        done = llmsim(capsys, "replay", write(tmp_path, changed))
        assert done.code == 1
        assert says in done.err
        assert len(done.err.splitlines()) == 1


def test_a_journal_that_was_cut_is_not_identical(tmp_path: Path, capsys: Capture, entries: list[Entry]) -> None:
    done = llmsim(capsys, "replay", write(tmp_path, entries[:-1]))
    assert (done.code, done.out) == (2, "")
    assert done.err == f"error: {tmp_path}/journal.jsonl.gz: ends in the middle of the run\n"


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (None, ": no such file"),
        (b"", ": the file is empty"),
        (gzip.compress(b"", mtime=0), ": the file is empty"),
        (b'{"format": 1}\n', ": line 1: Not a gzipped file"),
        (gzip.compress(b"[]\n", mtime=0), ": line 1: not a journal of format 1"),
        (gzip.compress(b"\xff\n", mtime=0), ": line 1: "),
        (gzip.compress(b"{\n", mtime=0), ": line 1: is not JSON: "),
        (gzip.compress(b"[" * 100_000, mtime=0), ": line 1: is not JSON: "),
    ],
)
def test_a_file_that_is_no_journal_is_one_line(tmp_path: Path, capsys: Capture, raw: bytes | None, says: str) -> None:
    path = tmp_path / "j.gz"
    if raw is not None:
        path.write_bytes(raw)
    done = llmsim(capsys, "replay", path)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: {path}{says}")
    assert len(done.err.splitlines()) == 1


def test_a_folder_is_no_journal(tmp_path: Path, capsys: Capture) -> None:
    done = llmsim(capsys, "replay", tmp_path)
    assert (done.code, done.err) == (2, f"error: {tmp_path}: is a folder, not a journal\n")


def test_a_truncated_or_damaged_journal_is_one_line(tmp_path: Path, capsys: Capture, journal: Path) -> None:
    raw = journal.read_bytes()
    for damaged in (raw[:-50], raw[: len(raw) // 2], raw[:2000] + b"\xff" * 50 + raw[2050:]):
        path = tmp_path / "j.gz"
        path.write_bytes(damaged)
        done = llmsim(capsys, "replay", path)
        assert done.code == 2
        assert done.err.startswith(f"error: {path}: line ")
        assert len(done.err.splitlines()) == 1
