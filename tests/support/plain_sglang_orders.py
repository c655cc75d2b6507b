"""How the plain SGLang scheduler sorts its queue before it tries to build a prefill batch."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .plain_radix import Insertion, PlainNode, PlainRadix
from .plain_sglang_memory import PlainSglangMemory
from .plain_sglang_request import PlainSglangRequest
from .ranks import RANKS

Queue = list[PlainSglangRequest]

CACHE_AWARE = ("lpm", "dfs-weight", "hrrn")
MOST_MATCHED = 128
"""While more wait, lpm and hrrn are fcfs; no more are refreshed."""
REFRESH_EVERY = 32
IN_BATCH_TOKENS = 32


class PlainOrders:
    """The queue's policies, and what they do to the tree on the way."""

    def __init__(self, config: dict[str, Any], memory: PlainSglangMemory, seen: Counter[str]) -> None:
        self.policy: str = config["schedule_policy"]
        self.by_priority: bool = config["enable_priority_scheduling"]
        self.low_first: bool = config["schedule_low_priority_values_first"]
        self.memory, self.seen = memory, seen
        self.num_prefilled = 0
        self.num_blind_sorts = 0
        if not memory.is_caching and self.policy in CACHE_AWARE:
            self.policy = "fcfs"

    def urgency(self, request: PlainSglangRequest) -> int:
        """The smallest is the most urgent."""
        return request.priority if self.low_first else -request.priority

    def sort(self, queue: Queue) -> None:
        """Sort the queue in place; its order persists."""
        policy = "fcfs" if self._falls_back(queue) else self.policy
        if policy == "lpm":
            self._sort_lpm(queue)
        elif policy == "dfs-weight":
            self._sort_dfs(queue)
        elif policy == "hrrn":
            self._sort_hrrn(queue)
        else:
            urgency = self.urgency if self.by_priority else lambda _: 0
            if policy == "lof":
                queue.sort(key=lambda r: (urgency(r), -len(r.answer)))
            elif self.by_priority:
                queue.sort(key=lambda r: (urgency(r), r.entry))
            self._refresh(queue)

    def _falls_back(self, queue: Queue) -> bool:
        falls_back = self.policy in ("lpm", "hrrn") and len(queue) > MOST_MATCHED
        self.seen["too many wait to be matched"] += falls_back
        return falls_back

    def _refresh(self, queue: Queue) -> None:
        """Keep alive what the queue will need, where nothing else looks at it before its turn."""
        if not queue or not self.memory.is_caching or self.memory.eviction != "lru":
            return
        if self.num_blind_sorts % REFRESH_EVERY == 0:
            self.seen["refreshed again"] += self.num_blind_sorts > 0
            for request in reversed(queue[:MOST_MATCHED]):
                self.memory.match(request.tokens)
        self.num_blind_sorts += 1

    def _matched(self, queue: Queue) -> tuple[dict[PlainSglangRequest, int], set[PlainSglangRequest]]:
        """What each has in the tree, and who had better wait for another of the queue to put it there."""
        matched, late = {}, set()
        others = PlainRadix(1, RANKS["lru"].rank, classic=False)
        for request in queue:
            tokens = request.tokens
            num_matched = self.memory.match(tokens)[1]
            matched[request] = min(num_matched, len(tokens) - 1)
            if num_matched > IN_BATCH_TOKENS:
                continue
            if others.match(tokens)[1] >= IN_BATCH_TOKENS:
                late.add(request)
            else:
                others.insert(tokens, Insertion(counts_hits=False))
        self.seen["late behind another of the queue"] += len(late)
        return matched, late

    def _sort_lpm(self, queue: Queue) -> None:
        matched, late = self._matched(queue)
        queue.sort(key=lambda r: (r in late, 0 if r in late else -matched[r]))

    def _sort_hrrn(self, queue: Queue) -> None:
        matched, late = self._matched(queue)
        queue.sort(key=lambda r: (self._response_ratio(r, matched[r], r in late), r.id))

    def _response_ratio(self, request: PlainSglangRequest, matched: int, is_late: bool) -> float:
        num_uncached = len(request.prompt) - matched
        if is_late:
            return float("inf")
        if num_uncached <= 0:
            return float("-inf")
        return -(self.num_prefilled - request.prefilled_before) / num_uncached

    def _sort_dfs(self, queue: Queue) -> None:
        ends: dict[PlainNode, Queue] = {}
        for request in queue:
            ends.setdefault(self.memory.match(request.tokens)[0], []).append(request)
        queue[:] = self._depth_first(self.memory.tree.root, ends)

    def _depth_first(self, node: PlainNode, ends: dict[PlainNode, Queue]) -> Queue:
        below = [self._depth_first(child, ends) for child in node.children]
        below.sort(key=lambda requests: -len(requests))
        return [request for requests in below for request in requests] + ends.get(node, [])
