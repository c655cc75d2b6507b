"""The KV memory of the plain scheduler: an object a block, a free queue, a map from content to blocks."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


class ContentKeys:
    """Numbers the prefixes of full blocks: two get the same number exactly if their tokens are equal."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int | None, tuple[int, ...]], int] = {}

    def extend(self, keys: list[int], tokens: Sequence[int], block_size: int) -> None:
        """Append to `keys` the numbers of the full blocks of `tokens` that it lacks."""
        for block in range(len(keys), len(tokens) // block_size):
            parent = keys[-1] if keys else None
            content = tuple(tokens[block * block_size : (block + 1) * block_size])
            keys.append(self._numbers.setdefault((parent, content), len(self._numbers)))


@dataclass(slots=True, eq=False)
class Block:
    """One block of memory; `key` is the prefix under which it can be found, once it is in the map."""

    ref_count: int = 0
    key: int | None = None


class PlainPool:
    """A block is in use (`ref_count > 0`) or in the free queue, where it may still be found by its key."""

    def __init__(self, num_blocks: int) -> None:
        """`num_blocks` counts the null block, which is never handed out."""
        self.free: OrderedDict[Block, None] = OrderedDict((Block(), None) for _ in range(num_blocks - 1))
        self.cached: dict[int, list[Block]] = {}
        self.num_evicted = 0

    def find(self, keys: Iterable[int]) -> list[Block]:
        """The cached blocks of the longest known prefix; among equal blocks the first that was entered."""
        found: list[Block] = []
        for key in keys:
            if key not in self.cached:
                break
            found.append(self.cached[key][0])
        return found

    def share(self, block: Block) -> None:
        """Add a user to a found block."""
        if block.ref_count == 0:
            del self.free[block]
        block.ref_count += 1

    def take(self) -> Block:
        """Hand out the head of the free queue; if it was cached, that content is evicted."""
        block, _ = self.free.popitem(last=False)
        if block.key is not None:
            self._evict(block, block.key)
        block.ref_count = 1
        return block

    def _evict(self, block: Block, key: int) -> None:
        self.cached[key].remove(block)
        if not self.cached[key]:
            del self.cached[key]
        block.key = None
        self.num_evicted += 1

    def enter(self, block: Block, key: int) -> bool:
        """Make a full block findable; true if an equal one already was."""
        block.key = key
        equals = self.cached.setdefault(key, [])
        equals.append(block)
        return len(equals) > 1

    def give_back(self, blocks: Sequence[Block]) -> None:
        """Drop one user of each block, the tail first, so that deeper blocks are evicted first."""
        for block in reversed(blocks):
            block.ref_count -= 1
            if block.ref_count == 0:
                self.free[block] = None
                if block.key is None:
                    self.free.move_to_end(block, last=False)
