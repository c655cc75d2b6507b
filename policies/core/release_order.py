"""Idle runs in order of release: what was freed longest ago goes first."""

from __future__ import annotations

from .block_runs import Node, Run


class ReleaseOrder:
    """Least recently freed first; within one release the deepest block first (vLLM's free queue).

    A doubly linked list through the runs: every operation takes constant time. A release frees the deepest run first,
    so nothing goes before the content that builds on it.
    """

    def __init__(self) -> None:
        self._oldest: Run | None = None
        self._newest: Run | None = None

    def freed(self, run: Run) -> None:
        """Append it."""
        run.older, run.newer = self._newest, None
        if self._newest is None:
            self._oldest = run
        else:
            self._newest.newer = run
        self._newest = run

    def reused(self, run: Run) -> None:
        """Take it out."""
        if run.older is None:
            self._oldest = run.newer
        else:
            run.older.newer = run.newer
        if run.newer is None:
            self._newest = run.older
        else:
            run.newer.older = run.older
        run.older = run.newer = None

    def split(self, run: Run, front: Run) -> None:
        """The front goes right behind the rest: deeper blocks go first."""
        front.older, front.newer = run, run.newer
        if run.newer is None:
            self._newest = front
        else:
            run.newer.older = front
        run.newer = front

    def exposed(self, node: Node) -> None:
        """Nothing to do: idle runs are in the list, whatever builds on them."""

    def choose(self, num_blocks: int) -> tuple[Run, int]:
        """The oldest."""
        run = self._oldest
        assert run is not None, num_blocks
        return run, min(num_blocks, len(run.ids))

    def shrunk(self, run: Run) -> None:
        """Nothing to do: it keeps its turn."""

    def evicted(self, run: Run) -> None:
        """Take it out."""
        self.reused(run)

    def check_integrity(self, idle: set[Run]) -> None:
        """Walk the list both ways."""
        run, older, seen = self._oldest, None, set()
        while run is not None:
            assert run.older is older, run.owner
            seen.add(run)
            older, run = run, run.newer
        assert older is self._newest, "the list's end is not its newest run"
        assert seen == idle, (len(seen), len(idle))
