"""`llmsim decisions --preset sglang` on operations of the radix tree, and what is wrong with a case of them."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from llmsim.tests.support.command_line import llmsim
from llmsim.tests.support.golden import GOLDEN, golden_case

Capture = pytest.CaptureFixture[str]

CASE = GOLDEN / "radix" / "lru-page16.json.gz"
SMALL: dict[str, Any] = {
    "config": {"page_size": 1, "eviction": "lru", "capacity": 10, "cache": "unified"},
    "ops": [{"op": "insert", "tokens": [1, 2]}, {"op": "lock", "tokens": [1], "as": "a"}],
    "log": [],
}


def changed(config: dict[str, Any] | None = None, op: dict[str, Any] | None = None, **keys: Any) -> dict[str, Any]:
    """The small case with other values; `op` is a further operation."""
    case = copy.deepcopy(SMALL)
    case["config"] |= config or {}
    case["ops"] += [op] if op else []
    return case | keys


def without(key: str) -> dict[str, Any]:
    """The small case without one of the keys of its config."""
    case = copy.deepcopy(SMALL)
    del case["config"][key]
    return case


def write(folder: Path, case: object) -> Path:
    path = folder / "case.json"
    path.write_text(json.dumps(case))
    return path


def test_the_log_is_printed_one_json_object_an_operation(capsys: Capture) -> None:
    done = llmsim(capsys, "decisions", CASE, "--preset", "sglang")
    assert (done.code, done.err) == (0, "")
    assert [json.loads(line) for line in done.out.splitlines()] == golden_case("radix", "lru-page16")["log"]


def test_check_of_a_golden_case_exits_0(capsys: Capture) -> None:
    done = llmsim(capsys, "decisions", CASE, "--preset", "sglang", "--check")
    assert (done.code, done.out) == (0, "")
    assert done.err.endswith("407 operations are identical\n")


@pytest.mark.parametrize("key", ["matched", "nodes", "evictable", "free"])
def test_check_of_another_log_exits_1_and_names_operation_key_and_values(
    tmp_path: Path, capsys: Capture, key: str
) -> None:
    case = golden_case("radix", "lru-page16")
    case["log"][17][key] += 1
    done = llmsim(capsys, "decisions", write(tmp_path, case), "--preset", "sglang", "--check")
    want = case["log"][17][key]
    assert (done.code, done.out) == (1, "")
    assert done.err == f"{tmp_path}/case.json: operation 17: {key}: want {want}, got {want - 1}\n"


def test_operations_are_not_vllms(capsys: Capture) -> None:
    done = llmsim(capsys, "decisions", CASE)
    assert done.code == 2
    assert done.err == f"error: {CASE}: ops: are operations on SGLang's radix tree; take --preset sglang\n"


def test_another_preset_is_one_line_with_the_choices(capsys: Capture) -> None:
    done = llmsim(capsys, "decisions", CASE, "--preset", "trt")
    assert done.code == 2
    assert "--preset: 'trt' is unknown; choose vllm, sglang" in done.err


@pytest.mark.parametrize(
    ("case", "says"),
    [
        (changed(ops=5), "ops: is missing, or not what it should be"),
        (changed(config=None, requests=[]), "ops: stands beside requests; a case has one of them"),
        (without("capacity"), "config.capacity: is missing"),
        (changed({"size": 1}), "config.size: unknown key; choose page_size, eviction, capacity, cache"),
        (changed({"page_size": 0}), "config.page_size: 0 is out of range; at least 1"),
        (changed({"page_size": True}), "config.page_size: True is not of type int"),
        (changed({"capacity": 2.5}), "config.capacity: 2.5 is not of type int"),
        (changed({"eviction": "lur"}), "config.eviction: 'lur' is unknown; choose fifo, filo, lfu, lru, mru"),
        (changed({"cache": "hash"}), "config.cache: 'hash' is unknown; choose radix, unified"),
        (changed(ops=["match"]), "ops[0]: not a JSON object"),
        (changed(ops=[{"tokens": []}]), "ops[0].op: is missing; choose match, insert, evict, lock, unlock"),
        (changed(None, {"op": "drop"}), "ops[2].op: 'drop' is unknown; choose match, insert, evict, lock, unlock"),
        (changed(None, {"op": ["match"]}), "ops[2].op: ['match'] is unknown; choose "),
        (changed(None, {"op": "match"}), "ops[2].tokens: is missing"),
        (changed(None, {"op": "match", "tokens": "ab"}), "ops[2].tokens: 'ab' is not of type list"),
        (changed(None, {"op": "match", "tokens": [1, "b"]}), "ops[2].tokens: holds something that is no integer"),
        (
            changed(None, {"op": "match", "tokens": [], "priority": 1}),
            "ops[2].priority: unknown key; choose op, tokens",
        ),
        (changed(None, {"op": "insert", "tokens": [], "priority": "1"}), "ops[2].priority: '1' is not of type int"),
        (changed(None, {"op": "evict", "num_tokens": -1}), "ops[2].num_tokens: -1 is negative"),
        (changed(None, {"op": "lock", "tokens": [], "as": "a"}), "ops[2].as: 'a' is locked already"),
        (changed(None, {"op": "unlock", "handle": "b"}), "ops[2].handle: 'b' is not locked"),
        (changed(log={}), "log: is not a list of operations"),
        (changed(log=[{"step": 1}]), "log[0]: is not an object with the number i of an operation"),
        ({key: SMALL[key] for key in ("config", "ops")}, "log: is missing; --check compares with it"),
    ],
)
def test_a_broken_case_is_one_line(tmp_path: Path, capsys: Capture, case: object, says: str) -> None:
    path = write(tmp_path, case)
    done = llmsim(capsys, "decisions", path, "--preset", "sglang", "--check")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: {path}: {says}")
    assert len(done.err.splitlines()) == 1
