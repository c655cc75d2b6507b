"""A plain, slow radix tree: token lists, recursion, a fresh heap at each eviction. Written from the rules alone."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from llmsim.policies.core.cache_entry import CacheEntry
from llmsim.policies.core.radix_eviction import Rank


@dataclass(slots=True, eq=False)
class PlainNode:
    """The tokens between its parent's and its children's."""

    tokens: list[int]
    parent: PlainNode | None
    owner: str | None = None
    created: int = 0
    last_used: int = 0
    hits: int = 0
    priority: int = 0
    locks: int = 0
    children: list[PlainNode] = field(default_factory=list)

    @property
    def num_tokens(self) -> int:
        return len(self.tokens)

    @property
    def depth_tokens(self) -> int:
        return self.parent.depth_tokens + self.parent.num_tokens if self.parent else 0


@dataclass(frozen=True, slots=True)
class Insertion:
    """Who inserts, how urgently, and which hits it counts."""

    owner: str | None = None
    priority: int = 0
    counts_hits: bool = True
    already_inserted: int = 0


class PlainRadix:
    """The whole tree, looked through from the root whenever anything is asked."""

    def __init__(self, page_size: int, rank: Callable[[CacheEntry], Rank], classic: bool) -> None:
        self.page_size, self.rank, self.classic = page_size, rank, classic
        self.root = PlainNode([], None)
        self.time = 0

    def nodes(self) -> Iterator[PlainNode]:
        stack = self.root.children[::-1]
        while stack:
            yield (node := stack.pop())
            stack += reversed(node.children)

    def sizes(self) -> tuple[int, int, int]:
        """Nodes, tokens, and tokens under a lock."""
        sizes = [(len(node.tokens), node.locks) for node in self.nodes()]
        return len(sizes), sum([size for size, _ in sizes]), sum([size for size, locks in sizes if locks])

    def peek(self, tokens: list[int]) -> int:
        """The longest beginning, in whole pages, that is the beginning of some path."""
        paths = [self._path(node) for node in self.nodes()]
        return max((self._common(path, tokens) for path in paths), default=0)

    def _path(self, node: PlainNode) -> list[int]:
        return self._path(node.parent) + node.tokens if node.parent else []

    def _common(self, a: list[int], b: list[int]) -> int:
        """Whole pages, in tokens, in which two lists begin alike."""
        page, n = self.page_size, 0
        while n + page <= min(len(a), len(b)) and a[n : n + page] == b[n : n + page]:
            n += page
        return n

    def match(self, tokens: list[int]) -> tuple[PlainNode, int]:
        return self._match(self.root, tokens)

    def _match(self, node: PlainNode, rest: list[int]) -> tuple[PlainNode, int]:
        for child in node.children:
            if n := self._common(child.tokens, rest):
                reached, more = self._match(self._walked(child, n), rest[n:])
                return reached, n + more
        return node, 0

    def _walked(self, node: PlainNode, n: int) -> PlainNode:
        """Refresh a node whose first `n` tokens were walked, and split it there; returns what was walked."""
        if n == node.num_tokens:
            node.last_used = self._tick()
            return node
        assert node.parent is not None
        upper = PlainNode(node.tokens[:n], node.parent, node.owner, node.created, self._tick())
        upper.hits, upper.priority, upper.locks, upper.children = node.hits, node.priority, node.locks, [node]
        if self.classic:
            upper.created = self._tick()
        siblings = node.parent.children
        siblings[siblings.index(node)] = upper
        node.tokens, node.parent, node.last_used = node.tokens[n:], upper, self._tick()
        return upper

    def insert(self, tokens: list[int], how: Insertion) -> int:
        """Returns how many of the tokens were there."""
        whole = tokens[: len(tokens) // self.page_size * self.page_size]
        return self._insert(self.root, whole, how)

    def _insert(self, node: PlainNode, rest: list[int], how: Insertion) -> int:
        node.priority = max(node.priority, how.priority)
        node.hits += how.counts_hits and node.depth_tokens + node.num_tokens > how.already_inserted
        if not rest:
            return 0
        for child in node.children:
            if n := self._common(child.tokens, rest):
                return n + self._insert(self._walked(child, n), rest[n:], how)
        now = self._tick()
        leaf = PlainNode(rest, node, how.owner, now, now, priority=how.priority)
        node.children.append(leaf)
        self._insert(leaf, [], how)
        return 0

    def lock(self, node: PlainNode, by: int) -> None:
        """Add `by` locks, one or minus one, to a node and all above it."""
        if node.parent:
            node.locks += by
            assert node.locks >= 0
            self.lock(node.parent, by)

    def evict(self, wanted: int) -> list[PlainNode]:
        heap = [(self.rank(n), n.last_used, n) for n in self.nodes() if not n.children and not n.locks]
        heapq.heapify(heap)
        gone: list[PlainNode] = []
        while heap and sum(n.num_tokens for n in gone) < wanted:
            gone.append(node := heapq.heappop(heap)[2])
            assert node.parent is not None
            node.parent.children.remove(node)
            if node.parent.parent and not node.parent.children and not node.parent.locks:
                heapq.heappush(heap, (self.rank(node.parent), node.parent.last_used, node.parent))
        return gone

    def _tick(self) -> int:
        self.time += 1
        return self.time
