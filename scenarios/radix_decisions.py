"""SGLang's radix tree alone: carries out the operations of a case and says what each did to the tree.

The format of cases and logs is that of the golden logs of the real tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..policies import registry
from ..policies.core.radix_node import RadixNode
from ..policies.core.radix_tree import RadixTree
from ..policies.core.request import Prompt
from ..policies.core.token_stream import TokenStream

Line = dict[str, Any]

NO_OUTPUT = -1
"""Content id of the output that a case's prompts never have."""


class RadixDecisions:
    """One case under way: the tree, the free tokens around it, and the locks that are held."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        config = case["config"]
        page_size = config["page_size"]
        eviction = registry.create("eviction", {"name": config["eviction"]})
        self.tree = RadixTree(page_size, eviction, classic=config["cache"] == "radix")
        self._num_slots: int = config["capacity"] // page_size * page_size
        self._operations: Sequence[Mapping[str, Any]] = case["ops"]
        self._locked: dict[str, RadixNode] = {}

    def log(self) -> Iterator[Line]:
        """The decision log, a line an operation."""
        steps = {
            "match": self._match,
            "insert": self._insert,
            "evict": self._evict,
            "lock": self._lock,
            "unlock": self._unlock,
        }
        for index, operation in enumerate(self._operations):
            line = {"i": index, "op": operation["op"]}
            yield line | steps[operation["op"]](operation) | self._sizes()

    def _sizes(self) -> Line:
        tree = self.tree
        return {
            "total": tree.num_tokens,
            "nodes": tree.num_nodes,
            "evictable": tree.num_evictable,
            "protected": tree.num_protected,
            "free": self._num_free,
        }

    @property
    def _num_free(self) -> int:
        return self._num_slots - self.tree.num_tokens

    def _match(self, operation: Mapping[str, Any]) -> Line:
        tokens = operation["tokens"]
        return {"matched": self.tree.match(_stream(tokens), len(tokens)).num_tokens}

    def _lock(self, operation: Mapping[str, Any]) -> Line:
        tokens = operation["tokens"]
        node, num_matched = self.tree.match(_stream(tokens), len(tokens))
        self.tree.lock(node)
        self._locked[operation["as"]] = node
        return {"matched": num_matched}

    def _unlock(self, operation: Mapping[str, Any]) -> Line:
        self.tree.unlock(self._locked.pop(operation["handle"]))
        return {}

    def _evict(self, operation: Mapping[str, Any]) -> Line:
        return self._evicted(operation["num_tokens"])

    def _evicted(self, num_tokens: int) -> Line:
        gone: list[RadixNode] = []
        num_evicted = self.tree.evict(num_tokens, gone.append)
        return {"num_evicted": num_evicted, "evicted": [_tokens(node) for node in gone]}

    def _insert(self, operation: Mapping[str, Any]) -> Line:
        """As an engine does: lock what is there, evict what lacks, insert; nothing where memory does not suffice."""
        tree, stream, num_tokens = self.tree, _stream(operation["tokens"]), len(operation["tokens"])
        node, num_matched = tree.match(stream, num_tokens)
        tree.lock(node)
        num_new = num_tokens - num_tokens % tree.page_size - num_matched
        line: Line = {"matched": num_matched}
        if num_new > self._num_free:
            line |= self._evicted(num_new - self._num_free)
        if num_new > self._num_free:
            line["error"] = "no space"
        else:
            mark = operation.get("inserted_len", 0)
            tree.insert(stream, num_tokens, priority=operation.get("priority", 0), already_inserted=mark)
            line["new"] = num_new
        tree.unlock(node)
        return line


def _stream(tokens: Sequence[int]) -> TokenStream:
    return TokenStream(Prompt.of_tokens(tokens), NO_OUTPUT)


def _tokens(node: RadixNode) -> list[object]:
    """The tokens of a node whose stream is literal: there, content is its own key."""
    return list(node.stream.block_key(node.depth_tokens, node.depth_tokens + node.num_tokens))
