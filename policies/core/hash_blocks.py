"""The prefix index of hashed blocks: which full blocks hold which content, who uses them, which may be evicted.

It decides as a map from prefix-chained block hashes to blocks does, but holds *runs*: a trie whose nodes are stretches
of consecutive blocks that share one fate. A node is split only where a request stops sharing, so a look-up or a
release costs the runs that it touches, not blocks.

    node     content of blocks [start, start + length) after its parent's
      run    one copy of that content in memory: `length` block ids, how many sequences use it
      run    a second copy (computed by someone who could not know of the first); a look-up takes the first

Invariants (`check_integrity`): a run is as long as its node; a node with children has runs; a run is evictable, and
known to the eviction policy, exactly while nobody uses it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..protocols import EvictionPolicy
from .token_stream import BlockKey, TokenStream


class Node:
    """A stretch of consecutive blocks of one content."""

    __slots__ = ("children", "key", "length", "parent", "runs", "start", "stream")

    def __init__(self, parent: Node | None, key: BlockKey, stream: TokenStream, start: int, length: int) -> None:
        self.parent = parent
        self.key = key
        self.stream = stream
        self.start = start
        self.length = length
        self.children: dict[BlockKey, Node] = {}
        self.runs: list[Run] = []


class Run:
    """One copy of a node's content: consecutive blocks of a sequence that share one fate."""

    __slots__ = ("front", "ids", "newer", "node", "num_users", "older", "owner")

    def __init__(self, node: Node, ids: list[int], owner: str, num_users: int, front: Run | None) -> None:
        self.node = node
        self.ids = ids
        self.owner = owner
        """The request that computed it."""
        self.num_users = num_users
        self.front = front
        """The run that was split off its front: with it, what was one run once."""
        self.older: Run | None = None
        self.newer: Run | None = None
        """Links for the eviction policy while nobody uses the run."""


class Lease:
    """A sequence's use of the last `num_blocks` blocks that end where `run` ends.

    Splitting a run leaves leases alone: one that covers more than its run goes on in the run's front.
    """

    __slots__ = ("num_blocks", "run")

    def __init__(self, run: Run, num_blocks: int) -> None:
        self.run = run
        self.num_blocks = num_blocks

    def runs_from_tail(self) -> Iterator[Run]:
        """The runs that it covers, deepest first."""
        run: Run | None = self.run
        left = self.num_blocks
        while left:
            assert run is not None, left
            yield run
            left -= len(run.ids)
            run = run.front


class Match(NamedTuple):
    """What the index holds of a prompt. Valid until the index changes."""

    path: list[tuple[Node, int]]
    """Nodes from the root with the number of their blocks that match."""
    num_blocks: int
    num_idle: int
    """Of these blocks, those that nobody uses: taking them uses up free memory."""


class Evicted(NamedTuple):
    """Blocks whose content was given up."""

    owner: str
    ids: list[int]


NO_MATCH = Match([], 0, 0)


class HashBlocks:
    """The prefix index of one KV cache. Full blocks enter when they are allocated, before they are computed."""

    def __init__(self, block_size: int, eviction: EvictionPolicy) -> None:
        self._block_size = block_size
        self._eviction = eviction
        self._root = Node(None, (), TokenStream.__new__(TokenStream), 0, 0)
        self.num_evictable = 0
        """Blocks that nobody uses; their content can still be matched."""

    def match(self, stream: TokenStream, max_blocks: int) -> Match:
        """The longest prefix of `stream`, at most `max_blocks` blocks, that is held. Changes nothing."""
        size, depth, idle = self._block_size, 0, 0
        node, path = self._root, []
        while depth < max_blocks:
            child = node.children.get(stream.block_key(depth * size, (depth + 1) * size))
            if child is None:
                break
            agreed = self._agreed(stream, child, depth, max_blocks - depth)
            path.append((child, agreed))
            depth += agreed
            if not child.runs[0].num_users:
                idle += agreed
            if agreed < child.length:
                break
            node = child
        return Match(path, depth, idle)

    def _agreed(self, stream: TokenStream, node: Node, depth: int, limit: int) -> int:
        """Leading blocks of `node`, at most `limit`, that `stream` holds from block `depth` on; the first is known."""
        length, size = min(node.length, limit), self._block_size
        if length == 1:
            return 1
        stop = stream.agreement(node.stream, (depth + 1) * size, (depth + length) * size)
        return stop // size - depth

    def acquire(self, match: Match) -> list[Lease]:
        """Use the matched blocks: of several copies the first. Splits the last node where the match ends."""
        leases = []
        for node, length in match.path:
            if length < node.length:
                node = self._split(node, length)
            run = node.runs[0]
            if not run.num_users:
                self._eviction.reused(run)
                self.num_evictable -= length
            run.num_users += 1
            leases.append(Lease(run, length))
        return leases

    def enter(self, leases: list[Lease], stream: TokenStream, start: int, ids: list[int], owner: str) -> None:
        """Enter the blocks `ids`, the content of `stream` from block `start` on, behind what `leases` covers.

        The caller holds them: `leases` grows by their runs. Content that is held already gets one more copy.
        """
        size = self._block_size
        lease = leases[-1] if leases else None
        node = lease.run.node if lease else self._root
        while ids:
            if lease and self.grow(lease, stream, ids, owner):
                return
            key = stream.block_key(start * size, (start + 1) * size)
            child = node.children.get(key)
            if child is None:
                child = node.children[key] = Node(node, key, stream, start, len(ids))
                taken, ids = ids, []
            else:
                agreed = self._agreed(stream, child, start, len(ids))
                if agreed < child.length:
                    child = self._split(child, agreed)
                taken, ids = ids[:agreed], ids[agreed:]
            run = Run(child, taken, owner, 1, None)
            child.runs.append(run)
            lease, node = Lease(run, len(taken)), child
            leases.append(lease)
            start += len(taken)

    def grow(self, lease: Lease, stream: TokenStream, ids: list[int], owner: str) -> bool:
        """Enter `ids` by lengthening the lease's run in place.

        False where the run is shared, not the end of a branch, or what another request computed.
        """
        run = lease.run
        node = run.node
        if run.num_users > 1 or node.children or len(node.runs) > 1 or run.owner != owner:
            return False
        run.ids += ids
        node.length += len(ids)
        if node.stream is not stream:
            node.stream = stream  # it agrees with the one before as far as that went
        lease.num_blocks += len(ids)
        return True

    def release(self, leases: list[Lease]) -> None:
        """Give the leases up, deepest block first; runs that nobody uses any more become evictable."""
        for lease in reversed(leases):
            for run in lease.runs_from_tail():
                run.num_users -= 1
                if not run.num_users:
                    self._eviction.freed(run)
                    self.num_evictable += len(run.ids)

    def evict(self, num_blocks: int) -> list[Evicted]:
        """Give up the content of `num_blocks` evictable blocks, which the eviction policy chooses."""
        assert num_blocks <= self.num_evictable, (num_blocks, self.num_evictable)
        evicted = [Evicted(run.owner, self._drop(run, count)) for run, count in self._eviction.choose(num_blocks)]
        self.num_evictable -= num_blocks
        assert sum(len(e.ids) for e in evicted) == num_blocks, (evicted, num_blocks)
        return evicted

    def _drop(self, run: Run, count: int) -> list[int]:
        """Drop the last `count` blocks of a run that nobody uses; returns their ids."""
        node = run.node
        keep = node.length - count
        if keep and len(node.runs) == 1 and not node.children:
            node.length = keep
            ids = run.ids[keep:]
            del run.ids[keep:]
            return ids
        if keep:
            self._split(node, keep)
        self._eviction.evicted(run)
        node.runs.remove(run)
        if not node.runs:
            assert not node.children, "evicted content that cached content builds on"
            assert node.parent is not None
            del node.parent.children[node.key]
        return run.ids

    def _split(self, node: Node, length: int) -> Node:
        """Split the first `length` blocks off; `node` and its runs keep the rest. Returns the new front node."""
        assert node.parent is not None
        size = self._block_size
        front = Node(node.parent, node.key, node.stream, node.start, length)
        node.parent.children[node.key] = front
        node.parent = front
        node.start += length
        node.length -= length
        node.key = node.stream.block_key(node.start * size, (node.start + 1) * size)
        front.children[node.key] = node
        for run in node.runs:
            run.front = Run(front, run.ids[:length], run.owner, run.num_users, run.front)
            del run.ids[:length]
            front.runs.append(run.front)
            if not run.num_users:
                self._eviction.split(run, run.front)
        return front

    def runs(self) -> Iterator[Run]:
        """Every run held, parents before children."""
        stack = [self._root]
        while stack:
            node = stack.pop()
            yield from node.runs
            stack.extend(node.children.values())

    def check_integrity(self) -> None:
        """Assert the invariants, walking the whole trie."""
        evictable, stack = 0, [self._root]
        while stack:
            node = stack.pop()
            for run in node.runs:
                assert run.node is node, (run.owner, node.start)
                assert len(run.ids) == node.length > 0, (run.owner, node.length)
                assert run.num_users >= 0, (run.owner, run.num_users)
                evictable += 0 if run.num_users else node.length
            for key, child in node.children.items():
                assert child.parent is node, (child.start, node.start)
                assert child.key == key, (child.key, key)
                assert child.runs, f"content without a copy at block {child.start}"
                assert child.start == node.start + node.length, (child.start, node.start, node.length)
                stack.append(child)
        assert evictable == self.num_evictable, (evictable, self.num_evictable)
        self._eviction.check_integrity({id(run) for run in self.runs() if not run.num_users})
