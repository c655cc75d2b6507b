"""The KV memory of the plain SGLang scheduler: what is free is counted anew whenever it is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .plain_radix import Insertion, PlainNode, PlainRadix
from .plain_sglang_request import PlainSglangRequest
from .ranks import RANKS


class PlainSglangMemory:
    """A capacity in tokens, a tree, and what requests hold beside the tree, in whole pages."""

    def __init__(self, config: dict[str, Any], requests: Iterable[PlainSglangRequest]) -> None:
        self.page: int = config["page_size"]
        self.capacity = config["max_total_tokens"] // self.page * self.page
        self.eviction: str = config["radix_eviction_policy"]
        self.is_caching = not config["disable_radix_cache"]
        self.tree = PlainRadix(self.page, RANKS[self.eviction].rank, classic=False)
        self.requests = list(requests)
        self.num_evicted = 0

    def ceil(self, num_tokens: int) -> int:
        """Tokens rounded up to whole pages."""
        return -(-num_tokens // self.page) * self.page

    def floor(self, num_tokens: int) -> int:
        """Tokens rounded down to whole pages."""
        return num_tokens // self.page * self.page

    @property
    def num_free(self) -> int:
        """Tokens that neither the tree nor a request holds."""
        return self.capacity - self.tree.sizes()[1] - self.num_own

    @property
    def num_own(self) -> int:
        """Tokens that requests hold beside the tree."""
        return sum(self.ceil(request.num_kv) - request.num_in_tree for request in self.requests if request.num_kv)

    @property
    def num_evictable(self) -> int:
        """Tokens of the tree that nobody locks."""
        _, total, protected = self.tree.sizes()
        return total - protected

    @property
    def num_available(self) -> int:
        """Tokens that are free or can be made free."""
        return self.capacity - self.num_protected - self.num_own

    @property
    def num_protected(self) -> int:
        """Tokens of the tree that someone locks."""
        return self.tree.sizes()[2]

    def match(self, tokens: list[int]) -> tuple[PlainNode, int]:
        """The longest known prefix: where it ends, and its length."""
        return self.tree.match(tokens) if self.is_caching else (self.tree.root, 0)

    def start(self, request: PlainSglangRequest) -> None:
        """Match a request, whose last token is always computed anew, and lock what is found."""
        request.node, request.num_in_tree = self.match(request.tokens[:-1])
        request.num_kv = request.num_in_tree
        self.tree.lock(request.node, +1)

    def give_back(self, request: PlainSglangRequest) -> None:
        """Take everything from a request; what the tree knows stays there."""
        assert request.node is not None
        self.tree.lock(request.node, -1)
        request.node, request.num_kv, request.num_in_tree, request.num_inserted = None, 0, 0, 0

    def enter(self, request: PlainSglangRequest) -> None:
        """Insert the whole pages of what is held for a request, and move its lock to their end."""
        if not self.is_caching:
            return
        assert request.node is not None
        tokens = request.tokens[: self.floor(request.num_kv)]
        prompt = request.prompt[: self.floor(len(request.prompt))]
        self.tree.insert(tokens, Insertion(request.id, request.priority, True, request.num_inserted))
        if len(tokens) > len(prompt):
            self.tree.insert(prompt, Insertion(request.id, request.priority + 1, counts_hits=False))
        self.tree.lock(request.node, -1)
        request.node, request.num_in_tree = self.tree.match(tokens)
        assert request.num_in_tree == len(tokens)
        self.tree.lock(request.node, +1)
        request.num_inserted = max(request.num_inserted, len(tokens))

    def make_room(self, num_tokens: int) -> bool:
        """Evict what is lacking of so many free tokens; whether they are free then."""
        short = num_tokens - self.num_free
        if short > 0:
            self.num_evicted += sum(node.num_tokens for node in self.tree.evict(short))
        return num_tokens <= self.num_free

    def num_to_extend(self, request: PlainSglangRequest, num_tokens: int) -> int:
        """Free tokens, in whole pages, that a request's next tokens need."""
        return self.ceil(request.num_kv + num_tokens) - self.ceil(request.num_kv)

    def num_to_decode(self, requests: Iterable[PlainSglangRequest]) -> int:
        """Free tokens that one more token of each of these requests needs."""
        return sum(self.num_to_extend(request, 1) for request in requests)
