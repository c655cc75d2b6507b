"""The prefix index of hashed blocks: which full blocks hold which content, who uses them, which may be evicted.

It decides as a map from prefix-chained block hashes to blocks does, but holds *runs*: a trie whose nodes are stretches
of consecutive blocks that share one fate. A node is split only where a request stops sharing, so a look-up or a
release costs the runs that it touches, not blocks.

    node     content of blocks [start, start + length) after its parent's
      run    one copy of that content in memory: `length` block ids, how many sequences use it
      run    a second copy (computed by someone who could not know of the first); a look-up takes the first

Invariants (`check_integrity`): a run is as long as its node; a node with children has runs; a run is idle, and known
to the eviction order, exactly while nobody uses it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..protocols import EvictionPolicy
from .block_runs import Lease, Node, Run
from .eviction_order import eviction_order
from .token_stream import TokenStream


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
        self._order = eviction_order(eviction, block_size)
        self._counter = 0
        """Grows with each release and with each entry but those that lengthen a run."""
        self._root = Node(None, (), TokenStream.__new__(TokenStream), 0, 0)
        self.num_evictable = 0
        """Blocks that nobody uses; their content can still be matched."""
        self.num_shared = 0
        """Uses of blocks beyond the first one of each."""

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

    def acquire(self, match: Match, priority: int = 0) -> list[Lease]:
        """Use the matched blocks: of several copies the first. Splits the last node where the match ends.

        `priority`: how much the user matters, the larger the more.
        """
        leases = []
        for node, length in match.path:
            if length < node.length:
                node = self._split(node, length)
            run = node.runs[0]
            if run.num_users:
                self.num_shared += length
            else:
                self._order.reused(run)
                self.num_evictable -= length
            run.num_users += 1
            run.hits += 1
            run.priority = max(run.priority, priority)
            leases.append(Lease(run, length))
        return leases

    def enter(
        self, leases: list[Lease], stream: TokenStream, start: int, ids: list[int], owner: str, priority: int = 0
    ) -> None:
        """Enter the blocks `ids`, the content of `stream` from block `start` on, behind what `leases` covers.

        The caller holds them: `leases` grows by their runs. Content that is held already gets one more copy.
        """
        size = self._block_size
        lease = leases[-1] if leases else None
        node = lease.run.node if lease else self._root
        if lease and self.grow(lease, stream, ids, owner):
            return
        self._counter += 1
        while ids:
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
            run = Run(child, taken, owner, self._counter, priority)
            child.runs.append(run)
            if child.children:
                self._order.exposed(child)  # the other copies are not needed any more
            node = child
            leases.append(Lease(run, len(taken)))
            start += len(taken)

    def grow(self, lease: Lease, stream: TokenStream, ids: list[int], owner: str) -> bool:
        """Enter `ids` by lengthening the lease's run in place.

        False where the run was ever shared, is not the end of a branch, or what another request computed.
        """
        run = lease.run
        node = run.node
        if run.hits > 1 or node.children or len(node.runs) > 1 or run.owner != owner:
            return False
        run.ids += ids
        node.length += len(ids)
        if node.stream is not stream:
            node.stream = stream  # it agrees with the one before as far as that went
        lease.num_blocks += len(ids)
        return True

    def release(self, leases: list[Lease]) -> None:
        """Give the leases up, deepest block first; runs that nobody uses any more become evictable."""
        self._counter += 1
        for lease in reversed(leases):
            for run in lease.runs_from_tail():
                run.num_users -= 1
                run.last_used = self._counter
                if run.num_users:
                    self.num_shared -= len(run.ids)
                else:
                    self._order.freed(run)
                    self.num_evictable += len(run.ids)

    def evict(self, num_blocks: int) -> list[Evicted]:
        """Give up the content of `num_blocks` evictable blocks, which the eviction policy chooses."""
        assert num_blocks <= self.num_evictable, (num_blocks, self.num_evictable)
        evicted, left = [], num_blocks
        while left:
            run, count = self._order.choose(left)
            evicted.append(Evicted(run.owner, self._drop(run, count)))
            left -= count
        self.num_evictable -= num_blocks
        return evicted

    def _drop(self, run: Run, count: int) -> list[int]:
        """Drop the last `count` blocks of a run that nobody uses; returns their ids."""
        node = run.node
        keep = node.length - count
        if keep and len(node.runs) == 1 and not node.children:
            node.length = keep
            ids = run.ids[keep:]
            del run.ids[keep:]
            self._order.shrunk(run)
            return ids
        if keep:
            self._split(node, keep)
        self._order.evicted(run)
        node.runs.remove(run)
        if not node.runs:
            assert not node.children, "evicted content that cached content builds on"
            parent = node.parent
            assert parent is not None
            del parent.children[node.key]
            if not parent.children:
                self._order.exposed(parent)
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
        front.runs = [run.split_off(front, length) for run in node.runs]
        for run, before in zip(node.runs, front.runs, strict=True):
            if not run.num_users:
                self._order.split(run, before)
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
        evictable, shared, stack = 0, 0, [self._root]
        while stack:
            node = stack.pop()
            for run in node.runs:
                assert run.node is node, (run.owner, node.start)
                assert len(run.ids) == node.length > 0, (run.owner, node.length)
                assert run.num_users >= 0, (run.owner, run.num_users)
                evictable += 0 if run.num_users else node.length
                shared += max(run.num_users - 1, 0) * node.length
            for key, child in node.children.items():
                assert child.parent is node, (child.start, node.start)
                assert child.key == key, (child.key, key)
                assert child.runs, f"content without a copy at block {child.start}"
                assert child.start == node.start + node.length, (child.start, node.start, node.length)
                stack.append(child)
        assert evictable == self.num_evictable, (evictable, self.num_evictable)
        assert shared == self.num_shared, (shared, self.num_shared)
        self._order.check_integrity({run for run in self.runs() if not run.num_users})
