"""How hashed blocks keep what may be evicted in the order in which it will go."""

from __future__ import annotations

from typing import Protocol

from ..protocols import EvictionPolicy
from .block_runs import Node, Run
from .evictable_heap import EvictableHeap
from .release_order import ReleaseOrder


class EvictionOrder(Protocol):
    """The index's own book of idle runs; told of every change to them. It never changes a run's content."""

    def freed(self, run: Run) -> None:
        """Nobody uses `run` any more."""
        ...

    def reused(self, run: Run) -> None:
        """`run`, so far idle, was hit."""
        ...

    def split(self, run: Run, front: Run) -> None:
        """The idle `run` gave its first blocks to the new run `front`, which is idle too."""
        ...

    def exposed(self, node: Node) -> None:
        """The runs of `node` may go now as far as they are idle: no cached content needs all of them."""
        ...

    def choose(self, num_blocks: int) -> tuple[Run, int]:
        """The idle run to go next, and how many blocks of it, from its end: at least 1, at most `num_blocks`.

        The index evicts them before it asks again.
        """
        ...

    def shrunk(self, run: Run) -> None:
        """Blocks at the end of the idle `run` are gone; some are left."""
        ...

    def evicted(self, run: Run) -> None:
        """All blocks of the idle `run` are gone."""
        ...

    def check_integrity(self, idle: set[Run]) -> None:
        """Assert that it knows what it must of the runs that nobody uses."""
        ...


def eviction_order(policy: EvictionPolicy, block_size: int) -> EvictionOrder:
    """A list in order of release where the policy promises to want just that, else a heap."""
    if getattr(policy, "by_release", False):
        return ReleaseOrder()
    return EvictableHeap(policy, block_size)
