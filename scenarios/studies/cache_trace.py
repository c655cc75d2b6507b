"""The blocks that requests ask for, one request after another, on disk: written once, read by every point of a study.

A block is what its tokens are together with all before them, so blocks are the nodes of a tree, numbered as they come
from 1 on; 0 is the root. In memory stands what grows with the number of distinct blocks; the requests stand in files.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...sim.columns import Ints

NEVER = 2**31 - 1
"""The next use of what is not used again, in the file of next uses: later than all requests."""


class Asked(NamedTuple):
    """A request: the blocks of its prompt, each after the one that it builds on."""

    nodes: list[int]
    num_tokens: int
    priority: int
    """The larger the more it matters."""
    start: int
    """Which use of a block, counted over all requests, its first one is."""


class BlockTrace(NamedTuple):
    """A recorded sequence of requests. A point of a study opens the files for itself."""

    folder: Path
    block_tokens: int
    num_requests: int
    num_nodes: int
    """Distinct blocks."""
    num_uses: int
    num_tokens: int
    found_blocks: int
    """What a cache without end finds."""
    found_tokens: int

    def parents(self) -> Ints:
        """Of each node the one before it, the root's its own."""
        return self._file("parents", np.int32)

    def depths(self) -> Ints:
        """Blocks before each node."""
        return self._file("depths", np.int32)

    def next_uses(self) -> Ints:
        """Of each use of a block the request (from 1) that uses it next, or NEVER; `write_next_uses` has made it."""
        return self._file("next_uses", np.int32)

    def requests(self) -> Iterator[Asked]:
        """In order."""
        nodes, ends = self._file("nodes", np.int32), self._file("ends", np.int64)
        tokens, priorities = self._file("tokens", np.int64), self._file("priorities", np.int64)
        start = 0
        for number in range(self.num_requests):
            end = int(ends[number])
            yield Asked(nodes[start:end].tolist(), int(tokens[number]), int(priorities[number]), start)
            start = end

    def write_next_uses(self) -> None:
        """Go through the requests from the last to the first."""
        nodes, ends = self._file("nodes", np.int32), self._file("ends", np.int64)
        next_uses = np.memmap(self.folder / "next_uses", np.int32, "w+", shape=max(1, self.num_uses))
        latest = np.full(self.num_nodes + 1, NEVER, np.int32)
        for number in range(self.num_requests, 0, -1):
            start = int(ends[number - 2]) if number > 1 else 0
            asked = nodes[start : int(ends[number - 1])]
            next_uses[start : start + len(asked)] = latest[asked]
            latest[asked] = number
        next_uses.flush()

    def _file(self, name: str, kind: type[np.signedinteger]) -> Ints:
        path = self.folder / name
        return np.memmap(path, kind, "r") if path.stat().st_size else np.zeros(0, kind)


class BlockTraceWriter:
    """Takes requests and counts what a cache without end finds of them."""

    def __init__(self, folder: Path, block_tokens: int) -> None:
        self._folder = folder
        self._block_tokens = block_tokens
        self._children: dict[tuple[int, Hashable], int] = {}
        self._parents, self._depths = array("i", [0]), array("i", [-1])
        self._columns = {name: array(code) for name, code in (("nodes", "i"), ("ends", "q"), ("tokens", "q"))}
        self._columns["priorities"] = array("q")
        self._num_uses = self._num_tokens = self._found_blocks = self._found_tokens = self.num_requests = 0
        for name in self._columns:
            (folder / name).write_bytes(b"")

    def add(self, keys: Sequence[Hashable], num_tokens: int, priority: int = 0) -> None:
        """The next request; `keys` tells its blocks apart from others that follow on the same block."""
        children, before, node = self._children, len(self._children), 0
        found = 0
        nodes = self._columns["nodes"]
        for depth, key in enumerate(keys):
            parent = node
            node = children.setdefault((parent, key), len(children) + 1)
            nodes.append(node)
            if node <= before:
                found += 1
            elif node == len(self._parents):
                self._parents.append(parent)
                self._depths.append(depth)
        self._num_uses += len(keys)
        self._num_tokens += num_tokens
        self._found_blocks += found
        self._found_tokens += min(found * self._block_tokens, num_tokens)
        self.num_requests += 1
        self._columns["ends"].append(self._num_uses)
        self._columns["tokens"].append(num_tokens)
        self._columns["priorities"].append(priority)
        if len(nodes) > 1 << 20:
            self._flush()

    def _flush(self) -> None:
        for name, column in self._columns.items():
            with (self._folder / name).open("ab") as file:
                column.tofile(file)
            del column[:]

    def finish(self) -> BlockTrace:
        """Write what is left."""
        self._flush()
        for name, column in (("parents", self._parents), ("depths", self._depths)):
            with (self._folder / name).open("wb") as file:
                column.tofile(file)
        return BlockTrace(
            self._folder, self._block_tokens, self.num_requests, len(self._children), self._num_uses,
            self._num_tokens, self._found_blocks, self._found_tokens,
        )  # fmt: skip
