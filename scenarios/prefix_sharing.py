"""How much of a traffic's prompts a prefix cache can find: with room for everything, and by size.

Prompts are paths in a tree of spans; what a prompt has in common with any before is where its path leaves the tree.
"""

from __future__ import annotations

from array import array

import numpy as np

from ..policies.core.request import Content, Request
from ..sim.columns import Floats, Ints

Key = tuple[int, Content, int]
"""Of a span: the node before it, its content, where in it the span begins."""


class PrefixSharing:
    """Fed with requests in order; a request finds what earlier ones have sent or generated.

    hit_tokens    what a cache without end finds of a prompt: whole blocks, and never its last token, which has to be
                  computed to know the next one
    blocks        of each span of each prompt, rounded up: a block that is not full counts as one, as in the block hit
                  rates that are published for traces
    """

    def __init__(self, block_tokens: int) -> None:
        self._block_tokens = block_tokens
        self._nodes: dict[tuple[Key, int], int] = {}
        self._longest: dict[Key, int] = {}
        self._touched = array("q")  # nodes in the order in which requests touched them
        self._blocks = array("q")  # of each touch: 0 where it was generated, not asked for
        self._request_ends = array("q")
        self.num_tokens = self.hit_tokens = 0

    def add(self, request: Request, output_tokens: int) -> None:
        """The next request, and how much it generates."""
        node, common, on_path = 0, 0, True
        for content, start, length in request.prompt.spans():
            key = (node, _hashable(content), start)
            longest = self._longest.get(key, 0)
            common += min(length, longest) if on_path else 0
            on_path = on_path and (key, length) in self._nodes
            node = self._touch(key, length, -(-length // self._block_tokens))
        self._touch((node, request.output_content, 0), output_tokens, 0)
        self._request_ends.append(len(self._touched))
        tokens = request.prompt.num_tokens
        self.num_tokens += tokens
        self.hit_tokens += min(common, tokens - 1) // self._block_tokens * self._block_tokens if tokens else 0

    def _touch(self, key: Key, length: int, blocks: int) -> int:
        node = self._nodes.setdefault((key, length), len(self._nodes) + 1)
        self._longest[key] = max(self._longest.get(key, 0), length)
        self._touched.append(node)
        self._blocks.append(blocks)
        return node

    def num_blocks(self) -> int:
        """Of all prompts."""
        return sum(self._blocks)

    def reuse_distances(self) -> tuple[Ints, Ints]:
        """`(distances, blocks)`: of each touch that finds its span, how many blocks an LRU cache needs for that.

        The number of distinct blocks touched since, and its own. Within a request the deepest block is touched first,
        so that a prefix outlives what hangs on it. What was generated takes no room until a prompt holds it.
        """
        counts = _Counts(len(self._touched))
        last_at: dict[int, int] = {}
        size: dict[int, int] = {}
        distances, found = array("q"), array("q")
        begin = 0
        for end in self._request_ends:
            recent = counts.total
            for at in range(begin, end):
                node, blocks = self._touched[at], self._blocks[at]
                if blocks and node in last_at:
                    more_recent = recent - counts.up_to(last_at[node])
                    distances.append(more_recent + blocks)
                    found.append(blocks)
            place = begin
            for at in range(end - 1, begin - 1, -1):
                node, blocks = self._touched[at], self._blocks[at]
                if node in last_at:
                    counts.add(last_at[node], -size[node])
                size[node] = max(blocks, size.get(node, 0))
                counts.add(place, size[node])
                last_at[node], place = place, place + 1
            begin = end
        return np.array(distances, dtype=np.int64), np.array(found, dtype=np.int64)


def hit_rates(distances: Ints, found: Ints, num_blocks: int, capacities: Ints) -> Floats:
    """The share of prompts' blocks that an LRU cache of each capacity finds."""
    order = np.argsort(distances, kind="stable")
    sums = np.concatenate([[0], np.cumsum(found[order])])
    return np.asarray(sums[np.searchsorted(distances[order], capacities, side="right")] / max(num_blocks, 1))


def _hashable(content: Content) -> Content:
    return tuple(content) if isinstance(content, list) else content


class _Counts:
    """Numbers at places, and their sums from the first place on (a Fenwick tree)."""

    def __init__(self, num_places: int) -> None:
        self._sums = [0] * (num_places + 1)
        self.total = 0

    def add(self, place: int, number: int) -> None:
        self.total += number
        place += 1
        sums = self._sums
        while place < len(sums):
            sums[place] += number
            place += place & -place

    def up_to(self, place: int) -> int:
        """The sum of places 0 to `place`."""
        place += 1
        total, sums = 0, self._sums
        while place:
            total += sums[place]
            place &= place - 1
        return total
