"""A journal holds all that a fresh core needs to decide the same, and a replay misses no difference."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from llmsim.policies.core.journal import JournalError, JournalWriter, read_journal
from llmsim.policies.core.plan import StepEvents
from llmsim.policies.core.records import RequestRecord, Status
from llmsim.policies.core.replay import Replay
from llmsim.policies.core.request import Arrival, Output, Prompt, Request
from llmsim.tests.support.driven_core import VLLM, DrivenCore, Flight, core_of, request_of
from llmsim.tests.support.traffic import drive, random_requests, random_specs, random_stops

Entry = dict[str, Any]


class JournaledCore(DrivenCore):
    """A driven core whose calls are written down."""

    journal: JournalWriter

    def add(self, request: Request, now_ns: int) -> RequestRecord:
        self.journal.added(Arrival(request.arrival_ns, request, Output(1)), now_ns)
        return super().add(request, now_ns)

    def abort(self, request_id: str, now_ns: int) -> RequestRecord | None:
        self.journal.aborted(request_id, now_ns)
        return super().abort(request_id, now_ns)

    def plan(self, now_ns: int) -> Flight | None:
        flight = super().plan(now_ns)
        if flight is not None:
            self.journal.planned(flight.plan)
        return flight

    def commit(self, now_ns: int) -> StepEvents:
        plan = self.pipe[0].plan
        events = super().commit(now_ns)
        self.journal.committed(plan, self.result, events, now_ns)
        return events


def write(path: Path, seed: int, *, depth: int, literal: bool = False, drafts: int = 0) -> JournaledCore:
    """Write the journal of random traffic with stops and aborts."""
    random = Random(seed)
    limits = {"num_blocks": 40, "block_size": 4, "max_num_seqs": 6, "max_num_batched_tokens": 40}
    core = core_of(specs := random_specs(random), **limits, depth=depth, num_speculative_tokens=drafts)
    requests = [*random_requests(random, 20), request_of("too large", 500, 5, arrival_ns=10_000)]
    outputs = None
    if literal:
        requests = [replace(r, prompt=Prompt.of_tokens(random.choices((1, 2), k=len(r.prompt)))) for r in requests]
        outputs = {r.id: random.choices((1, 2), k=r.max_tokens) for r in requests}
    accepts = {r.id: [random.randint(0, drafts) for _ in range(3)] for r in requests}
    driven = JournaledCore(core, random_stops(random, requests), accepts, outputs)
    with JournalWriter(path, core.config, specs, "test") as driven.journal:
        drive(driven, requests, random, abort_chance=0.03)
    return driven


KINDS = pytest.mark.parametrize(
    "kind",
    [
        {"depth": 1},
        {"depth": 2},
        {"depth": 1, "drafts": 3},
        {"depth": 1, "literal": True},
        {"depth": 2, "literal": True},
    ],
    ids=lambda kind: "-".join(f"{key}={value}" for key, value in kind.items()),
)


@KINDS
def test_a_replay_decides_the_same(tmp_path: Path, kind: dict[str, Any]) -> None:
    statuses = set()
    for seed in range(8):
        driven = write(path := tmp_path / "journal.jsonl.gz", seed, **kind)
        replay = Replay(read_journal(path))
        assert replay.run() is None
        records = [account.record for account in driven.accounts.values()]
        statuses |= {record.status for record in records}
        assert replay.num_plans == len(driven.flights)
        assert replay.num_finished == sum(record.status is Status.FINISHED for record in records)
        assert replay.core.num_free_blocks == driven.core.num_free_blocks
    assert statuses == {Status.FINISHED, Status.ABORTED, Status.REFUSED}


@KINDS
def test_the_same_run_writes_the_same_bytes(tmp_path: Path, kind: dict[str, Any]) -> None:
    for name in ("one", "two"):
        write(tmp_path / name, 5, **kind)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def entries_of(path: Path) -> list[Entry]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def rewrite(path: Path, entries: list[Entry]) -> None:
    path.write_bytes(gzip.compress("".join(json.dumps(entry) + "\n" for entry in entries).encode()))


def change_last(call: str, change: Callable[[Entry], None]) -> Callable[[list[Entry]], int]:
    """Change the last entry of a call, one with a finish if it is a commit; returns its line."""

    def apply(entries: list[Entry]) -> int:
        at = max(i for i, e in enumerate(entries) if e.get("call") == call and (call != "commit" or "finished" in e))
        change(entries[at])
        return at + 1

    return apply


@pytest.mark.parametrize(
    ("call", "change", "message"),
    [
        ("plan", lambda e: e.update(digest="0" * 16), "differs: "),
        ("commit", lambda e: e["finished"][0].__setitem__(2, 7), "finished [["),
        ("commit", lambda e: e.update(now_ns=e["now_ns"] + 1), "finished [["),
        ("commit", lambda e: e.pop("finished"), "the journal has []"),
    ],
)
@pytest.mark.parametrize("depth", [1, 2])
def test_a_changed_journal_differs_at_that_line(
    tmp_path: Path, depth: int, call: str, change: Callable[[Entry], None], message: str
) -> None:
    write(path := tmp_path / "journal", 3, depth=depth)
    line = change_last(call, change)(entries := entries_of(path))
    rewrite(path, entries)
    difference = Replay(read_journal(path)).run()
    assert difference is not None
    assert difference.startswith(f"line {line}: ")
    assert message in difference


def test_a_journal_that_lost_its_aborts_differs(tmp_path: Path) -> None:
    write(path := tmp_path / "journal", 3, depth=2)
    entries = entries_of(path)
    kept = [entry for entry in entries if entry.get("call") != "abort"]
    assert len(kept) < len(entries)
    rewrite(path, kept)
    assert Replay(read_journal(path)).run() is not None


ADD = {"call": "add", "now_ns": 0, "id": "a", "arrival_ns": 0, "max_tokens": 1, "output_content": 1}


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([{"call": "commit", "now_ns": 1}], "a commit without a plan"),
        ([{"call": "plan", "now_ns": 1, "digest": ""}], "nothing to plan where the journal has a plan"),
        ([ADD | {"spans": [[1, 0, 4]]}] * 2, "a second request a"),
    ],
)
def test_calls_that_fit_no_core_are_a_difference(tmp_path: Path, entries: list[Entry], message: str) -> None:
    write(path := tmp_path / "journal", 3, depth=1)
    rewrite(path, [entries_of(path)[0], *entries])
    assert Replay(read_journal(path)).run() == f"line {1 + len(entries)}: {message}"


def test_a_plan_too_many_is_a_difference(tmp_path: Path) -> None:
    write(path := tmp_path / "journal", 3, depth=1)
    entries = entries_of(path)
    at = next(i for i, entry in enumerate(entries) if entry.get("call") == "plan")
    rewrite(path, [*entries[: at + 1], entries[at]])
    assert Replay(read_journal(path)).run() == f"line {at + 2}: a plan too many in flight"


@pytest.mark.parametrize(
    "entry",
    [{}, {"call": "dance"}, {"call": "plan"}, {"call": "add", "now_ns": 0}, ADD, ADD | {"spans": [[1, 0, -4]]}],
)
def test_a_malformed_entry_is_named_by_its_line(tmp_path: Path, entry: Entry) -> None:
    write(path := tmp_path / "journal", 3, depth=1)
    rewrite(path, [entries_of(path)[0], entry])
    with pytest.raises(JournalError, match="line 2: malformed entry"):
        Replay(read_journal(path)).run()


@pytest.mark.parametrize("change", [{"config": {"num_blocks": 0}}, {"config": {"wheels": 4}}, {"policies": {}}])
def test_a_malformed_description_of_the_engine_is_named_by_its_line(tmp_path: Path, change: Entry) -> None:
    write(path := tmp_path / "journal", 3, depth=1)
    rewrite(path, [entries_of(path)[0] | change])
    with pytest.raises(JournalError, match="line 1: "):
        Replay(read_journal(path))


def spoil(data: bytes) -> bytes:
    """The first compressed block of a type that there is not; the gzip header (10 bytes) stays."""
    return data[:10] + bytes([data[10] | 0b110]) + data[11:]


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[: len(data) // 2],
        spoil,
        lambda data: b"",
        lambda data: gzip.compress(b""),
        lambda data: b"name: agent\n",
        lambda data: gzip.compress(b"name: agent\n"),
        lambda data: gzip.compress(b'{"requests": []}\n'),
        lambda data: gzip.compress(b"[1, 2]\n"),
        lambda data: gzip.compress(b"\xff\xfe\n"),
    ],
    ids=["truncated", "spoiled", "empty", "empty inside", "text", "text inside", "other", "list", "not utf-8"],
)
def test_a_file_that_is_no_whole_journal_is_told_by_its_name(tmp_path: Path, change: Callable[[bytes], bytes]) -> None:
    write(path := tmp_path / "journal", 3, depth=1)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(JournalError, match=f"^{path}: "):
        Replay(read_journal(path)).run()


def test_a_file_that_is_not_there_is_told_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="no such file"):
        next(read_journal(tmp_path / "journal"))


def test_all_of_a_request_comes_back(tmp_path: Path) -> None:
    core = core_of(num_blocks=10)
    request = replace(request_of("a", 3, 4, arrival_ns=5, priority=-1), tenant="t", session="", deadline_ns=0)
    with JournalWriter(tmp_path / "journal", core.config, VLLM, "test") as journal:
        journal.added(Arrival(5, request, Output(1)), 6)
        journal.added(Arrival(5, replace(request, id="b", prompt=Prompt()), Output(1)), 6)
        journal.added(Arrival(5, replace(request, id="c"), Output(1), refusal="a zero-length row"), 6)
    replay = Replay(read_journal(tmp_path / "journal"))
    assert replay.run() is None
    (sequence,) = replay.core.sequences.values()
    assert sequence.request.prompt.spans() == request.prompt.spans()
    assert replace(sequence.request, prompt=request.prompt) == request
