"""A node of the radix tree: a stretch of tokens behind those of its parent, and what is known of its use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .token_stream import BlockKey, TokenStream


class RadixNode:
    """The tokens [depth_tokens, depth_tokens + num_tokens) of `stream`; a `CacheEntry` for eviction policies.

    The stream may have grown since, or be another's with the same tokens; only this stretch of it counts.
    """

    __slots__ = (
        "children",
        "created",
        "depth_tokens",
        "hits",
        "is_held",
        "is_noted",
        "key",
        "last_used",
        "num_locks",
        "num_tokens",
        "owner",
        "pages",
        "parent",
        "place",
        "priority",
        "stream",
    )

    def __init__(
        self,
        parent: RadixNode | None,
        key: BlockKey,
        stream: TokenStream,
        depth_tokens: int,
        num_tokens: int,
        owner: str | None,
    ) -> None:
        self.parent = parent
        """None for the root alone."""
        self.key = key
        """Content of its first page, under which its parent knows it."""
        self.stream = stream
        self.depth_tokens = depth_tokens
        self.num_tokens = num_tokens
        self.owner = owner
        """The request that computed it."""
        self.pages: list[int] | None = None
        """Numbers of its pages, where pages have numbers."""
        self.children: dict[BlockKey, RadixNode] = {}
        self.num_locks = 0
        """Locks on it or below it."""
        self.created = 0
        self.last_used = 0
        self.hits = 0
        self.priority = 0
        self.is_held = True
        """False once it is evicted."""
        self.place = 0
        """Number of its latest entry in the eviction heap."""
        self.is_noted = False
        """Whether its rank is to be asked for again before the next eviction."""

    @property
    def is_evictable_leaf(self) -> bool:
        """Whether nothing builds on it and nobody uses it. Not to be asked of the root."""
        return not self.children and not self.num_locks

    def held_before(self, stop: int) -> RadixNode:
        """The deepest node from here up that is still held and ends at or before token `stop`."""
        node = self
        while not node.is_held or node.depth_tokens + node.num_tokens > stop:
            assert node.parent is not None  # the root is held and ends at 0
            node = node.parent
        return node

    def split(self, length: int, page_size: int) -> RadixNode:
        """Split the first `length` tokens off into a new node, which takes its place among its siblings.

        This node stays the lower half, so whoever holds it still holds its end. The upper half is as often used, as
        urgent and as locked.
        """
        assert self.parent is not None
        assert 0 < length < self.num_tokens, (length, self.num_tokens)
        upper = RadixNode(self.parent, self.key, self.stream, self.depth_tokens, length, self.owner)
        upper.created, upper.hits, upper.priority = self.created, self.hits, self.priority
        upper.num_locks = self.num_locks
        if self.pages is not None:
            upper.pages = self.pages[: length // page_size]
            del self.pages[: length // page_size]
        self.parent.children[self.key] = upper
        self.parent = upper
        self.depth_tokens += length
        self.num_tokens -= length
        self.key = self.stream.block_key(self.depth_tokens, self.depth_tokens + page_size)
        upper.children[self.key] = self
        return upper

    def below(self) -> Iterator[RadixNode]:
        """Every node below this one, parents before children."""
        stack = list(self.children.values())
        while stack:
            node = stack.pop()
            yield node
            stack.extend(node.children.values())

    def check_integrity(self, page_size: int) -> None:
        """Assert that it fits its parent, its content and its children's locks. Not to be asked of the root."""
        parent, start = self.parent, self.depth_tokens
        assert parent is not None
        assert self.is_held, (self.owner, start)
        assert parent.children[self.key] is self, (self.owner, start)
        assert self.key == self.stream.block_key(start, start + page_size), (self.key, start)
        assert start == parent.depth_tokens + parent.num_tokens, (start, parent.depth_tokens, parent.num_tokens)
        assert self.num_tokens > 0, (self.owner, start)
        assert self.num_tokens % page_size == 0, (self.num_tokens, page_size)
        locks_below = sum(child.num_locks for child in self.children.values())
        assert self.num_locks >= locks_below, (self.num_locks, locks_below)


class Match(NamedTuple):
    """The longest prefix that is held."""

    node: RadixNode
    """Where it ends; the root if nothing matches. Valid until evicted: lock it to keep it."""
    num_tokens: int


class Inserted(NamedTuple):
    """A prefix that is held now."""

    node: RadixNode
    """Where it ends."""
    num_matched: int
    """Tokens that were held before: a caller who computed them too gives its copies back."""
