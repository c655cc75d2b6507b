"""One cache of one size under one policy, without time: requests come one after another and leave all that they had.

A request hits its longest beginning of which all blocks are cached. Then all of its blocks are in the cache, and while
those are too many the policy's first goes, one that no cached block builds on. This is what Mooncake's figure 9 counts
(Qin et al., FAST'25): no time, nothing is in use, outputs are not cached.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush, heappushpop
from typing import Any, NamedTuple, Protocol

from ...policies import registry
from ...policies.core.evictable_heap import SPARE_ITEMS, CachedBlock, Rank
from ...policies.protocols import EvictionPolicy
from .cache_trace import Asked, BlockTrace

BELADY = "belady"


class Found(NamedTuple):
    """What a cache found of all requests."""

    blocks: int
    tokens: int
    mean_share: float
    """Of a request's blocks, the mean over requests that have any."""


class Cached:
    """The cache's blocks by node: when they entered and were last used, how often, how many cached ones follow."""

    def __init__(self, trace: BlockTrace) -> None:
        size = trace.num_nodes + 1
        self.parents: list[int] = trace.parents().tolist()
        self.depths: list[int] = trace.depths().tolist()
        self.created, self.last_used, self.hits = [0] * size, [0] * size, [0] * size
        """Hits are 0 for what is not cached."""
        self.priorities, self.num_children = [0] * size, [0] * size
        self.num_blocks = 0

    def use(self, asked: Asked, now: int) -> int:
        """Enter what is missing; returns how many blocks were there."""
        hits, last_used, priorities, found = self.hits, self.last_used, self.priorities, 0
        for node in asked.nodes:
            if not hits[node]:
                break
            hits[node] += 1
            last_used[node] = now
            if asked.priority > priorities[node]:
                priorities[node] = asked.priority
            found += 1
        for node in asked.nodes[found:]:
            hits[node] = 1
            self.created[node] = last_used[node] = now
            priorities[node] = asked.priority
            self.num_children[self.parents[node]] += 1
        self.num_blocks += len(asked.nodes) - found
        return found

    def is_leaf(self, node: int, last_used: int) -> bool:
        """Whether it is cached, was not used since, and no cached block builds on it."""
        return self.last_used[node] == last_used and self.hits[node] > 0 and not self.num_children[node]

    def drop(self, node: int) -> int:
        """Evict it; returns the block before."""
        self.hits[node] = 0
        self.num_blocks -= 1
        parent = self.parents[node]
        self.num_children[parent] -= 1
        return parent


class Ranking(Protocol):
    """Which block goes first."""

    def note(self, asked: Asked) -> None:
        """A request uses its blocks."""
        ...

    def rank(self, node: int) -> Rank:
        """The smallest goes first. Asked once nothing cached builds on the block, kept until its next use."""
        ...


class ByPolicy:
    """An eviction policy of the engine; its entries are single blocks, the index's counter counts requests."""

    def __init__(self, policy: EvictionPolicy, cached: Cached, block_tokens: int) -> None:
        self._policy = policy
        self._cached = cached
        self._block_tokens = block_tokens

    def note(self, asked: Asked) -> None:
        """Nothing that the cache does not know."""

    def rank(self, node: int) -> Rank:
        """As the policy has it."""
        c, size = self._cached, self._block_tokens
        depth_tokens = c.depths[node] * size
        return self._policy.rank(
            CachedBlock(c.created[node], c.last_used[node], c.hits[node], c.priorities[node], size, depth_tokens)
        )


class Belady:
    """What is used again last, or never, goes first: no policy finds more blocks, whatever it knows.

    Belady's MIN (IBM Systems Journal 5(2), 1966) with bypass: a block may be dropped with the request that brought it.
    Between two uses a block either stays and is found, or not. So a policy chooses intervals of time, never more at
    once than the cache has blocks, and to give up the one that ends last whenever there are too many keeps as many as
    can be kept (Faigle and Nawijn, Discrete Applied Mathematics 58, 1995). That a request finds only an unbroken
    beginning costs MIN nothing: whoever uses a block uses all before it, which are therefore used again no later and
    given up no sooner. To any other policy it can only do harm. The bound is on blocks found, not on tokens.
    """

    def __init__(self, trace: BlockTrace) -> None:
        self._next_uses = trace.next_uses()
        self._next_use = [0] * (trace.num_nodes + 1)

    def note(self, asked: Asked) -> None:
        """Look up when they are used next."""
        next_use = self._next_use
        uses = self._next_uses[asked.start : asked.start + len(asked.nodes)].tolist()
        for node, use in zip(asked.nodes, uses, strict=True):
            next_use[node] = use

    def rank(self, node: int) -> Rank:
        """The latest first."""
        return -self._next_use[node]


def replay(trace: BlockTrace, eviction: Mapping[str, Any], num_blocks: int) -> Found:
    """What a cache of `num_blocks` blocks finds; `eviction` names a policy and its parameters, or `belady`."""
    cached = Cached(trace)
    if eviction["name"] == BELADY:
        return _replay(trace, cached, Belady(trace), num_blocks)
    policy = registry.create("eviction", eviction)
    return _replay(trace, cached, ByPolicy(policy, cached, trace.block_tokens), num_blocks)


def _replay(trace: BlockTrace, cached: Cached, ranking: Ranking, num_blocks: int) -> Found:
    leaves = Leaves(cached, ranking)
    blocks = tokens = num_requests = 0
    shares = 0.0
    for now, asked in enumerate(trace.requests(), start=1):
        if not asked.nodes:
            continue
        found = cached.use(asked, now)
        ranking.note(asked)
        leaves.offer(asked.nodes[-1])
        if cached.num_blocks > num_blocks:
            leaves.evict(cached.num_blocks - num_blocks)
        blocks += found
        tokens += min(found * trace.block_tokens, asked.num_tokens)
        shares += found / len(asked.nodes)
        num_requests += 1
    return Found(blocks, tokens, shares / num_requests if num_requests else 0.0)


_Item = tuple[Rank, int, int, int]
"""Rank, last use, minus depth, node."""


class Leaves:
    """A lazy heap of the blocks that may go: equal ranks in order of last use, then the deepest."""

    def __init__(self, cached: Cached, ranking: Ranking) -> None:
        self._cached = cached
        self._ranking = ranking
        self._heap: list[_Item] = []

    def offer(self, node: int) -> None:
        """Enter a block that is cached, unless it is the root or something builds on it."""
        cached = self._cached
        if not node or cached.num_children[node]:
            return
        item = self._ranking.rank(node), cached.last_used[node], -cached.depths[node], node
        heappush(self._heap, item)
        if len(self._heap) > 2 * cached.num_blocks + SPARE_ITEMS:
            self._heap = [item for item in self._heap if cached.is_leaf(item[3], item[1])]
            heapify(self._heap)

    def evict(self, count: int) -> None:
        """Give up the first `count` blocks; what they built on may be among them."""
        item = heappop(self._heap)
        for _ in range(count - 1):
            item = self._after(self._cached.drop(self._valid(item)))
        self.offer(self._cached.drop(self._valid(item)))

    def _valid(self, item: _Item) -> int:
        """The block of `item`, or else of the first item behind it that may go."""
        cached, heap = self._cached, self._heap
        while not cached.is_leaf(item[3], item[1]):
            item = heappop(heap)
        return item[3]

    def _after(self, node: int) -> _Item:
        """Offer `node` and take the first, at once."""
        cached = self._cached
        if not node or cached.num_children[node]:
            return heappop(self._heap)
        return heappushpop(self._heap, (self._ranking.rank(node), cached.last_used[node], -cached.depths[node], node))
