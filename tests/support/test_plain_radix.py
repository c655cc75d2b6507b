"""The plain radix tree, against which the other is held, is itself exact on the golden cases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from llmsim.scenarios.log_comparison import first_difference
from llmsim.tests.support.golden import golden_case, golden_names
from llmsim.tests.support.plain_radix import Insertion, PlainNode, PlainRadix
from llmsim.tests.support.ranks import RANKS

Line = dict[str, Any]


def operation_log(case: Line) -> Iterator[Line]:
    """The log of a case, of the plain tree."""
    config, held = case["config"], dict[str, PlainNode]()
    tree = PlainRadix(config["page_size"], RANKS[config["eviction"]].rank, config["cache"] == "radix")
    for index, operation in enumerate(case["ops"]):
        said = _carried_out(tree, operation, config["capacity"], held)
        nodes, total, protected = tree.sizes()
        sizes = {"total": total, "nodes": nodes, "protected": protected, "free": config["capacity"] - total}
        yield {"i": index, "op": operation["op"]} | said | sizes | {"evictable": total - protected}


def _carried_out(tree: PlainRadix, operation: Line, capacity: int, held: dict[str, PlainNode]) -> Line:
    tokens = operation.get("tokens", [])
    if operation["op"] == "unlock":
        tree.lock(held.pop(operation["handle"]), -1)
        return {}
    if operation["op"] == "evict":
        return _evicted(tree, operation["num_tokens"])
    node, matched = tree.match(tokens)
    if operation["op"] == "lock":
        held[operation["as"]] = node
        tree.lock(node, +1)
    if operation["op"] != "insert":
        return {"matched": matched}
    tree.lock(node, +1)
    new = len(tokens) // tree.page_size * tree.page_size - matched
    short = new - (capacity - tree.sizes()[1])
    evicted = _evicted(tree, short) if short > 0 else {}
    assert tree.insert(tokens, Insertion(priority=operation["priority"])) == matched
    tree.lock(node, -1)
    return {"matched": matched, "new": new} | evicted


def _evicted(tree: PlainRadix, wanted: int) -> Line:
    gone = [node.tokens for node in tree.evict(wanted)]
    return {"num_evicted": sum(map(len, gone)), "evicted": gone}


@pytest.mark.parametrize("name", golden_names("radix"))
def test_every_operation_of_a_golden_case_is_the_real_trees(name: str) -> None:
    case = golden_case("radix", name)
    assert first_difference(case["log"], operation_log(case)) is None
