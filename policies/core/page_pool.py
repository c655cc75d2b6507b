"""KV memory that is only counted: how many pages are free, how many more the radix tree could give up."""

from __future__ import annotations

from .radix_tree import RadixTree


class PagePool:
    """Pages without numbers. Free are the blank ones and those of tree nodes that nobody has locked."""

    def __init__(self, num_pages: int, page_size: int, tree: RadixTree) -> None:
        assert num_pages >= 1, num_pages
        self.num_pages = num_pages
        self.num_blank = num_pages
        """Pages that hold nothing."""
        self.num_evicted = 0
        """Pages evicted so far."""
        self._page_size = page_size
        self._tree = tree

    @property
    def num_free(self) -> int:
        """Pages that can be handed out."""
        return self.num_blank + self._tree.num_evictable // self._page_size

    @property
    def num_evictable(self) -> int:
        """Of these, the ones whose content the tree still holds."""
        return self._tree.num_evictable // self._page_size

    def check_integrity(self, num_held: int) -> None:
        """Assert that every page is blank, in the tree, or one of the `num_held` that sequences hold beside it."""
        in_tree = self._tree.num_tokens // self._page_size
        assert self.num_blank + in_tree + num_held == self.num_pages, (self.num_blank, in_tree, num_held)
