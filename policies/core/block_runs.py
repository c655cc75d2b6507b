"""What the index of hashed blocks is made of: nodes of content, runs of blocks that hold it, leases on runs."""

from __future__ import annotations

from collections.abc import Iterator

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

    __slots__ = (
        "created",
        "front",
        "hits",
        "ids",
        "last_used",
        "newer",
        "node",
        "num_users",
        "older",
        "owner",
        "priority",
    )

    def __init__(self, node: Node, ids: list[int], owner: str, created: int, priority: int) -> None:
        self.node = node
        self.ids = ids
        self.owner = owner
        """The request that computed it."""
        self.num_users = 1
        self.front: Run | None = None
        """The run that was split off its front: with it, what was one run once."""
        self.created = created
        """The index's counter when its first block entered."""
        self.last_used = created
        """The counter when it was last released."""
        self.hits = 1
        """How many sequences have used it."""
        self.priority = priority
        """The greatest of those who used it."""
        self.older: Run | None = None
        self.newer: Run | None = None
        """Links for the order of release while nobody uses the run."""

    def split_off(self, front: Node, length: int) -> Run:
        """Move the first `length` blocks to a new run of the node `front`, which has been through the same."""
        run = Run(front, self.ids[:length], self.owner, self.created, self.priority)
        del self.ids[:length]
        run.num_users, run.last_used, run.hits = self.num_users, self.last_used, self.hits
        self.front, run.front = run, self.front
        return run


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
