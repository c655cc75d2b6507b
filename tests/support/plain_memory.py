"""What the plain scheduler does with a request's blocks: find, share, take, enter into the map, give back."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .plain_pool import Block, ContentKeys, PlainPool
from .plain_request import PlainRequest


class PlainMemory:
    """The pool as requests see it, in tokens."""

    def __init__(self, config: dict[str, Any], seen: Counter[str]) -> None:
        self.seen = seen
        self.block_size: int = config["block_size"]
        self.is_caching = bool(config.get("enable_prefix_caching", True))
        self.reserves_all = bool(config.get("scheduler_reserve_full_isl", True))
        self.watermark_blocks = int(config.get("watermark", 0) * config["num_blocks"])
        self.pool = PlainPool(config["num_blocks"])
        self.keys = ContentKeys()

    @property
    def num_free(self) -> int:
        """Blocks that no request uses."""
        return len(self.pool.free)

    def find(self, request: PlainRequest) -> list[Block]:
        """The cached blocks that a request may use: at least its last token is always computed anew."""
        if not self.is_caching:
            return []
        self.keys.extend(request.keys, request.tokens, self.block_size)
        return self.pool.find(request.keys[: (len(request.tokens) - 1) // self.block_size])

    def fits_waiting(self, request: PlainRequest, found: list[Block], num_tokens: int, alone: bool) -> bool:
        """Whether a request with these found blocks may enter to compute `num_tokens`."""
        end = len(found) * self.block_size + num_tokens
        if self.reserves_all:
            end = max(end, len(request.tokens))
        num_idle = sum(block.ref_count == 0 for block in found)
        needed = self._num_blocks(end) - len(found) + num_idle
        return needed <= self.num_free - (0 if alone else self.watermark_blocks)

    def fits_running(self, request: PlainRequest, num_tokens: int) -> bool:
        """Whether the free blocks suffice for a running request's next tokens."""
        return self._num_missing(request, num_tokens) <= self.num_free

    def share(self, request: PlainRequest, found: list[Block]) -> None:
        """Start a request on the blocks that were found for it."""
        for block in found:
            self.pool.share(block)
        request.blocks = found
        request.computed = len(found) * self.block_size
        request.num_entered = len(found)

    def place(self, request: PlainRequest, num_tokens: int) -> None:
        """Take the blocks for the next tokens, and enter at once those that these tokens fill."""
        for _ in range(self._num_missing(request, num_tokens)):
            request.blocks.append(self.pool.take())
        self.enter(request, min(request.computed + num_tokens, len(request.tokens)))

    def enter(self, request: PlainRequest, num_tokens: int) -> None:
        """Make the full blocks of the first `num_tokens` tokens findable."""
        if not self.is_caching:
            return
        self.keys.extend(request.keys, request.tokens, self.block_size)
        while (request.num_entered + 1) * self.block_size <= num_tokens:
            block, key = request.blocks[request.num_entered], request.keys[request.num_entered]
            self.seen["equal blocks coexist"] += self.pool.enter(block, key)
            request.num_entered += 1

    def release(self, request: PlainRequest) -> None:
        """Take all blocks from a request; the cached ones stay findable until they are handed out."""
        self.pool.give_back(request.blocks)
        request.blocks, request.computed, request.num_entered = [], 0, 0

    def _num_missing(self, request: PlainRequest, num_tokens: int) -> int:
        return max(0, self._num_blocks(request.computed + num_tokens) - len(request.blocks))

    def _num_blocks(self, num_tokens: int) -> int:
        return -(-num_tokens // self.block_size)
