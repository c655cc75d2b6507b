"""Depth first through the radix tree, where most requests wait first."""

from __future__ import annotations

from ..core.radix_node import RadixNode
from ..core.sequence import Sequence
from ..core.waiting_queue import WaitingQueue
from ..protocols import EngineView
from ..registry import register

Ends = dict[RadixNode, list[Sequence]]


@register("scheduling", "dfs_weight")
class DfsWeight:
    """Requests below one node go one after another, the node with the most waiting below it first (SGLang)."""

    requires = ("radix_tree",)

    def insert(self, queue: WaitingQueue, sequence: Sequence) -> None:
        """Last."""
        queue.append(sequence)

    def reorder(self, queue: WaitingQueue, view: EngineView) -> None:
        """In the order of a walk through the tree."""
        ends: Ends = {}
        for sequence in queue:
            ends.setdefault(view.prefix_node(sequence), []).append(sequence)
        queue.replace(_walk(view.prefix_root, ends, _weights(ends)))


def _weights(ends: Ends) -> dict[RadixNode, int]:
    """How many requests wait at or below each node, of those that lie on a path to any."""
    weights: dict[RadixNode, int] = {}
    for end, sequences in ends.items():
        node: RadixNode | None = end
        while node is not None:
            weights[node] = weights.get(node, 0) + len(sequences)
            node = node.parent
    return weights


def _walk(root: RadixNode, ends: Ends, weights: dict[RadixNode, int]) -> list[Sequence]:
    """Children before the requests that end at their parent, the heaviest first, equal ones in order of insertion."""
    order: list[Sequence] = []
    stack: list[tuple[RadixNode, bool]] = [(root, False)]
    while stack:
        node, is_done = stack.pop()
        if is_done:
            order += ends.get(node, ())
            continue
        stack.append((node, True))
        children = [child for child in node.children.values() if child in weights]
        children.sort(key=lambda child: -weights[child])
        stack += [(child, False) for child in reversed(children)]
    return order
