"""Numbers for the pages of a radix cache: which are free, which the tree's nodes hold, which stand in whose table.

Only an executor that holds real KV needs them; without one pages are counted (docs/decisions). What is decided is the
same. A sequence's table begins with the tree's pages, as far as it has locked them, then come pages of its own:

    table    [ 7 8 9 | 3 ]  num_locked = 3 pages        tree   [ 7 8 ]-[ 9 ]        free   5 6 2 4 1

A page that is freed when a step is committed may still be read or written by a step in flight. It is handed out by a
later plan at the earliest, and a device carries plans out in their order, so nobody finds another's content.
"""

from __future__ import annotations

from collections.abc import Collection

from .grant_log import GrantLog
from .radix_node import Inserted, RadixNode
from .radix_tree import RadixTree
from .sequence import Sequence


class PageNumbers:
    """Pages 1 to `num_pages`; page 0 belongs to nobody."""

    def __init__(self, num_pages: int, page_size: int, log: GrantLog) -> None:
        self._num_pages = num_pages
        self._page_size = page_size
        self._log = log
        self._free = list(range(num_pages, 0, -1))
        """The last one goes first."""
        self._tables: dict[Sequence, list[int]] = {}

    def table(self, sequence: Sequence) -> list[int]:
        """Pages of a running sequence in order of their tokens."""
        return list(self._tables[sequence])

    def begin(self, sequence: Sequence, node: RadixNode | None) -> None:
        """Open a table with the prefix that ends with `node`, which is locked for the sequence; None: with nothing."""
        assert sequence not in self._tables, sequence
        pages = self._tables[sequence] = [] if node is None else _pages(node, 0)
        if pages:
            self._log.add(sequence, 0, pages[:])

    def extend(self, sequence: Sequence, num_pages: int) -> None:
        """Hand out free pages, as many as there are at least, for the end of the sequence's table."""
        free, table = self._free, self._tables[sequence]
        assert num_pages <= len(free), (num_pages, len(free))
        taken = free[: -num_pages - 1 : -1]
        del free[len(free) - num_pages :]
        self._log.add(sequence, len(table), taken)
        table += taken

    def enter(self, sequence: Sequence, inserted: Inserted, end: int) -> None:
        """The sequence's first `end` tokens have just been inserted: its own pages of what is new are the tree's now.

        What the tree held already the sequence reads there from now on; its own copies become free.
        """
        size, table, leaf = self._page_size, self._tables[sequence], inserted.node
        first, matched = sequence.num_locked // size, inserted.num_matched // size
        if inserted.num_matched < end:
            leaf.pages = table[matched : end // size]
            assert leaf.parent is not None
            leaf = leaf.parent
        if matched > first:
            pages = _pages(leaf, sequence.num_locked)
            assert len(pages) == matched - first, (len(pages), first, matched)
            self._free += table[first:matched]
            table[first:matched] = pages
            self._log.add(sequence, first, pages)

    def evicted(self, node: RadixNode) -> None:
        """A node has left the tree: its pages are free."""
        assert node.pages is not None, node.owner
        self._free += node.pages

    def close(self, sequence: Sequence, num_shared: int) -> None:
        """Give up a sequence's table; its first `num_shared` tokens are the tree's, all other pages become free."""
        self._free += self._tables.pop(sequence, [])[num_shared // self._page_size :]
        self._log.withdraw(sequence)

    def check_integrity(self, tree: RadixTree, running: Collection[Sequence], num_blank: int) -> None:
        """Assert that each page is free, in the tree or a sequence's own, and that tables begin with the tree's."""
        assert len(self._free) == num_blank, (len(self._free), num_blank)
        assert self._tables.keys() <= set(running), "a sequence that does not run has a table"
        places = self._free[:]
        for node in tree.nodes():
            assert node.pages is not None, node.owner
            assert len(node.pages) * self._page_size == node.num_tokens, (node.pages, node.num_tokens)
            places += node.pages
        for sequence, table in self._tables.items():
            num_locked = sequence.num_locked // self._page_size
            shared = [] if sequence.node is None else _pages(sequence.node, 0)
            assert table[:num_locked] == shared, (sequence, table, shared)
            places += table[num_locked:]
        assert sorted(places) == list(range(1, self._num_pages + 1)), sorted(places)


def _pages(node: RadixNode, start: int) -> list[int]:
    """Pages of the path that ends with `node`, from token `start` on, where a node begins."""
    parts: list[list[int]] = []
    while node.parent is not None and node.depth_tokens >= start:
        assert node.pages is not None, node.owner
        parts.append(node.pages)
        node = node.parent
    return [page for part in reversed(parts) for page in part]
