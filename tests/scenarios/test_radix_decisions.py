"""The radix tree decides as the real one, at every operation of its logs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from llmsim.scenarios.log_comparison import first_difference
from llmsim.scenarios.radix_decisions import RadixDecisions
from llmsim.tests.support.golden import golden_case, golden_names

NAMES = golden_names("radix")


def checked(decisions: RadixDecisions) -> Iterator[dict[str, Any]]:
    for line in decisions.log():
        decisions.tree.check_integrity()
        yield line


def test_there_are_logs_of_both_trees_and_of_several_page_sizes() -> None:
    configs = [golden_case("radix", name)["config"] for name in NAMES]
    assert {config["cache"] for config in configs} == {"radix", "unified"}
    assert {config["page_size"] for config in configs} == {1, 4, 8, 16}


@pytest.mark.parametrize("name", NAMES)
def test_every_operation_of_a_golden_case_is_the_real_trees(name: str) -> None:
    case = golden_case("radix", name)
    assert first_difference(case["log"], checked(RadixDecisions(case))) is None


def test_what_does_not_fit_is_not_inserted_and_says_so() -> None:
    operations = [
        {"op": "insert", "tokens": [1, 2, 3, 4]},
        {"op": "lock", "tokens": [1, 2, 3], "as": "a"},
        {"op": "insert", "tokens": [5, 6, 7]},
        {"op": "unlock", "handle": "a"},
        {"op": "insert", "tokens": [5, 6, 7]},
    ]
    config = {"page_size": 1, "eviction": "lru", "capacity": 5, "cache": "unified"}
    log = list(RadixDecisions({"config": config, "ops": operations}).log())
    refused = {"matched": 0, "num_evicted": 1, "evicted": [[4]], "error": "no space", "total": 3, "free": 2}
    assert log[2] == log[2] | refused
    assert "new" not in log[2]
    assert log[4] == log[4] | {"num_evicted": 3, "evicted": [[1, 2, 3]], "new": 3, "free": 2}


def test_memory_is_whole_pages() -> None:
    config = {"page_size": 4, "eviction": "lru", "capacity": 15, "cache": "unified"}
    (line,) = RadixDecisions({"config": config, "ops": [{"op": "match", "tokens": []}]}).log()
    assert line["free"] == 12
