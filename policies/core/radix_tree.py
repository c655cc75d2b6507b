"""SGLang's prefix index: a radix tree of token stretches, in pages, that are locked and evicted as whole nodes.

It counts tokens and knows no memory slots. Prompts are spans of content and stay spans: looking one up costs the nodes
that it touches, not its tokens. Decides as SGLang 0.5.23's tree does (golden/radix, and a plain tree under fuzz).

    root ── "You are a helpful" ─┬─ " assistant. Q1"          a node: tokens, who computed them, how they were used
                                 └─ " poet. Q2" ─── " Answer"     children by the content of their first page

Invariants (`check_integrity`): a node holds whole pages; it is locked at least as often as its children together;
what is not locked is evictable, a leaf before its parent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..protocols import EvictionPolicy
from .radix_eviction import EvictableLeaves
from .radix_node import Inserted, Match, RadixNode
from .token_stream import TokenStream


class RadixTree:
    """The radix tree of one KV cache. Time is a counter that moves with every node touched."""

    def __init__(self, page_size: int, eviction: EvictionPolicy, *, classic: bool = False) -> None:
        """With `classic` the upper half of a split counts as created by the split, as in SGLang's older tree."""
        assert page_size >= 1, page_size
        self.page_size = page_size
        self._classic = classic
        self._leaves = EvictableLeaves(eviction)
        self.root = RadixNode(None, (), TokenStream.__new__(TokenStream), 0, 0, None)
        self._clock = 0
        self.num_nodes = 0
        """Nodes but the root."""
        self.num_tokens = 0
        """Tokens held."""
        self.num_protected = 0
        """Of these, tokens under a lock."""
        self.num_shared = 0
        """Locks on tokens beyond the first one of each."""

    @property
    def num_evictable(self) -> int:
        """Tokens that nobody has locked."""
        return self.num_tokens - self.num_protected

    def peek(self, stream: TokenStream, num_tokens: int, *, known: RadixNode | None = None) -> int:
        """How many of the first `num_tokens` tokens are held, in whole pages. Changes nothing.

        `known` as for `match`.
        """
        page = self.page_size
        stop = num_tokens - num_tokens % page
        node = self.root if known is None else known.held_before(stop)
        depth = node.depth_tokens + node.num_tokens
        while depth < stop:
            child = node.children.get(stream.block_key(depth, depth + page))
            if child is None:
                break
            agreed = self._agreed(stream, child, stop)
            depth += agreed
            if agreed < child.num_tokens:
                break
            node = child
        return depth

    def match(self, stream: TokenStream, num_tokens: int, *, known: RadixNode | None = None) -> Match:
        """Find and refresh the longest prefix, in whole pages, of the first `num_tokens` tokens.

        Splits the node in whose middle it ends, and refreshes both halves. `known` is where an earlier match or
        insert of `stream` ended, evicted since or not: it saves comparing what lies before, and changes no outcome.
        """
        page = self.page_size
        stop = num_tokens - num_tokens % page
        node = self.root if known is None else self._refresh_path(known.held_before(stop))
        depth, clock = node.depth_tokens + node.num_tokens, self._clock
        while depth < stop:
            child = node.children.get(stream.block_key(depth, depth + page))
            if child is None:
                break
            agreed = self._agreed(stream, child, stop)
            depth += agreed
            if agreed < child.num_tokens:
                self._clock = clock
                return Match(self._split(child, agreed), depth)
            clock += 1
            child.last_used = clock
            node = child
        self._clock = clock
        self._note(node)
        return Match(node, depth)

    def insert(
        self,
        stream: TokenStream,
        num_tokens: int,
        *,
        owner: str | None = None,
        priority: int = 0,
        counts_hits: bool = True,
        already_inserted: int = 0,
    ) -> Inserted:
        """Hold the first `num_tokens` tokens, in whole pages; refreshes every node on the way.

        Each gets at least `priority`, and one hit if it ends beyond the `already_inserted` tokens that this request
        has inserted before. What is new is one leaf, `owner`'s, not locked.
        """
        page = self.page_size
        stop = num_tokens - num_tokens % page
        mark = already_inserted if counts_hits else stop
        node, depth = self.root, 0
        while depth < stop:
            child = node.children.get(stream.block_key(depth, depth + page))
            if child is None:
                leaf = self._append(node, stream, depth, stop, owner)
                leaf.priority, leaf.hits = priority, int(stop > mark)
                return Inserted(leaf, depth)
            agreed = self._agreed(stream, child, stop)
            depth += agreed
            node = self._split(child, agreed) if agreed < child.num_tokens else child
            self._refresh(node)
            node.hits += depth > mark
            if priority > node.priority:
                node.priority = priority
        self._note(node)
        return Inserted(node, depth)

    def lock(self, node: RadixNode) -> None:
        """Keep `node` and all before it from eviction, once more."""
        assert node.is_held, f"lock of an evicted node of {node.owner}"
        parent = node.parent
        while parent is not None:
            if node.num_locks:
                self.num_shared += node.num_tokens
            else:
                self.num_protected += node.num_tokens
            node.num_locks += 1
            node, parent = parent, parent.parent

    def unlock(self, node: RadixNode) -> None:
        """Take one lock back."""
        parent = node.parent
        while parent is not None:
            assert node.num_locks > 0, f"unlock of a node of {node.owner} that is not locked"
            node.num_locks -= 1
            if node.num_locks:
                self.num_shared -= node.num_tokens
            else:
                self.num_protected -= node.num_tokens
                self._note(node)
            node, parent = parent, parent.parent

    def evict(self, num_tokens: int, on_evict: Callable[[RadixNode], None] | None = None) -> int:
        """Evict whole unlocked leaves until at least `num_tokens` tokens are gone or no such leaf is left.

        A node whose last child goes becomes a leaf. Returns the tokens evicted, which may be more than asked for;
        `on_evict` is told of each node that has gone.
        """
        num_evicted = 0
        while num_evicted < num_tokens:
            node = self._leaves.pop()
            if node is None:
                break
            self._remove(node)
            num_evicted += node.num_tokens
            if on_evict is not None:
                on_evict(node)
        return num_evicted

    def _agreed(self, stream: TokenStream, node: RadixNode, stop: int) -> int:
        """Leading tokens of `node`, in whole pages before `stop`, that `stream` holds there; its first page does."""
        depth, page = node.depth_tokens, self.page_size
        end = min(depth + node.num_tokens, stop)
        known = depth + page
        if known < end:
            end = stream.agreement(node.stream, known, end)
        return end - depth - (end - depth) % page

    def _append(self, parent: RadixNode, stream: TokenStream, start: int, stop: int, owner: str | None) -> RadixNode:
        key = stream.block_key(start, start + self.page_size)
        leaf = parent.children[key] = RadixNode(parent, key, stream, start, stop - start, owner)
        self._clock += 1
        leaf.created = leaf.last_used = self._clock
        self.num_nodes += 1
        self.num_tokens += leaf.num_tokens
        self._leaves.note(leaf)
        return leaf

    def _split(self, node: RadixNode, length: int) -> RadixNode:
        """Split a node after `length` tokens and refresh both halves; returns the upper one."""
        upper = node.split(length, self.page_size)
        self.num_nodes += 1
        self._refresh(upper)
        self._refresh(node)
        if self._classic:
            upper.created = upper.last_used
        self._note(node)
        return upper

    def _refresh_path(self, end: RadixNode) -> RadixNode:
        """Refresh a node and all before it. Their order does not matter: no two of them can be leaves at once."""
        node, parent = end, end.parent
        while parent is not None:
            self._refresh(node)
            node, parent = parent, parent.parent
        return end

    def _refresh(self, node: RadixNode) -> None:
        self._clock += 1
        node.last_used = self._clock

    def _note(self, node: RadixNode) -> None:
        """Tell the eviction of a change if `node` is a leaf that may be evicted."""
        if not node.children and not node.num_locks and node.parent is not None:
            self._leaves.note(node)

    def _remove(self, leaf: RadixNode) -> None:
        parent = leaf.parent
        assert parent is not None
        del parent.children[leaf.key]
        leaf.is_held = False
        self.num_nodes -= 1
        self.num_tokens -= leaf.num_tokens
        self._note(parent)

    def nodes(self) -> Iterator[RadixNode]:
        """Every node but the root, parents before children."""
        return self.root.below()

    def check_integrity(self) -> None:
        """Assert the invariants, walking the whole tree."""
        nodes = list(self.nodes())
        for node in nodes:
            node.check_integrity(self.page_size)
        assert self.num_nodes == len(nodes), (self.num_nodes, len(nodes))
        assert self.num_tokens == sum(node.num_tokens for node in nodes), self.num_tokens
        assert self.num_protected == sum(node.num_tokens for node in nodes if node.num_locks), self.num_protected
        assert self.num_shared == sum(max(node.num_locks - 1, 0) * node.num_tokens for node in nodes), self.num_shared
        self._leaves.check_integrity([node for node in nodes if node.is_evictable_leaf])
