"""`llmsim cache` tells the same figures to people, to programs and as a picture; mistakes are one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llmsim.tests.support.command_line import llmsim

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.jsonl"
    rows = [[0, 1, 2], [0, 1, 3], [4], [0, 1, 2], [4, 5], [0, 1, 3]]
    lines = [{"timestamp": 0, "input_length": 16 * len(ids) - 1, "output_length": 1, "hash_ids": ids} for ids in rows]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def test_people_and_programs_get_the_same_rates(trace: Path, capsys: Capture) -> None:
    done = llmsim(capsys, "cache", trace, "--blocks", "2,4", "--eviction", "lru,fifo", "--jobs", "1", "--json")
    assert done.code == 0
    report = done.json()
    assert [(p["eviction"], p["blocks"]) for p in report["points"]] == [
        (name, size) for name in ("lru", "fifo", "belady") for size in (2, 4)
    ]
    assert "6 requests, 15 blocks of 16 tokens, 6 distinct" in done.err
    rates = {(p["eviction"], p["blocks"]): p["block_hit_rate"] for p in report["points"]}
    row = next(line.split() for line in done.err.splitlines() if line.split()[:1] == ["4"])
    assert row[1:] == [f"{100 * rates[name, 4]:.2f}" for name in ("lru", "fifo", "belady")]
    assert rates["belady", 2] > rates["lru", 2]


def test_a_picture_is_drawn_and_the_same_again(trace: Path, tmp_path: Path, capsys: Capture) -> None:
    for name in ("a.png", "b.png"):
        done = llmsim(capsys, "cache", trace, "--eviction", "lru", "--jobs", "1", "-o", tmp_path / name)
        assert done.code == 0, done.err
        assert f"picture in {tmp_path / name}" in done.err.replace("\n", "")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_the_table_is_turned_so_that_it_is_narrow(trace: Path, capsys: Capture) -> None:
    names = ["lru", "lfu", "fifo", "mru", "filo", "length_aware", "random", "belady"]
    done = llmsim(capsys, "cache", trace, "--blocks", "2", "--eviction", ",".join(names), "--jobs", "1")
    assert [line.split()[0] for line in done.err.splitlines() if len(line.split()) == 3][1:] == names
    done = llmsim(capsys, "cache", trace, "--blocks", "1,2,3,4,5,6", "--eviction", "lru", "--jobs", "1")
    assert [line.split()[0] for line in done.err.splitlines() if len(line.split()) == 3][1:] == [*"123456", "∞"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--blocks", "0"), "--blocks: 0 is out of range: must be at least 1"),
        (("--blocks", "10,-1"), "--blocks: -1 is out of range: must be at least 1"),
        (("--blocks", "ten"), "--blocks: 'ten' is not a whole number of blocks"),
        (("--blocks", "1.5"), "--blocks: '1.5' is not a whole number of blocks"),
        (("--eviction", "lur"), "--eviction: 'lur' is unknown; choose belady, cost_aware, "),
        (("--block-size", "0"), "Invalid value for '--block-size'"),
        (("--block-size", "512"), "line 1: hash_ids: has 3 ids, but 47 tokens in blocks of 512 need 1"),
        (("-o", "/nowhere/x.png", "--jobs", "1"), "/nowhere/x.png: cannot be made: No such file or directory"),
    ],
)
def test_a_mistake_is_one_line(arguments: tuple[str, ...], says: str, trace: Path, capsys: Capture) -> None:
    done = llmsim(capsys, "cache", trace, *arguments)
    assert done.code == 2
    assert says in done.err.splitlines()[-1]
    assert done.out == ""


def test_a_trace_without_block_ids_is_refused(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "azure.csv"
    path.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,374,44\n", encoding="utf-8")
    done = llmsim(capsys, "cache", path)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert "a cache study needs `input_length` and `hash_ids` in each row" in done.err
