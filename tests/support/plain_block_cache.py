"""A prefix cache of single blocks, without time, by definition: paths in, the smallest rank out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from llmsim.policies.core.evictable_heap import CachedBlock
from llmsim.policies.protocols import EvictionPolicy

Path = tuple[int, ...]
"""A block's id after those of all blocks before it."""


@dataclass
class Stats:
    created: int
    last_used: int
    hits: int


def paths(ids: list[int]) -> list[Path]:
    return [tuple(ids[: end + 1]) for end in range(len(ids))]


def hits_of(requests: list[list[int]], policy: EvictionPolicy, num_blocks: int, block_tokens: int) -> list[int]:
    """Blocks that each request finds."""
    cached: dict[Path, Stats] = {}
    found = []
    for now, ids in enumerate(requests, start=1):
        found.append(next((i for i, path in enumerate(paths(ids)) if path not in cached), len(ids)))
        for path in paths(ids):
            stats = cached.setdefault(path, Stats(now, now, 0))
            stats.last_used, stats.hits = now, stats.hits + 1
        while len(cached) > num_blocks:
            leaves = [p for p in cached if not any(len(q) == len(p) + 1 and q[: len(p)] == p for q in cached)]
            del cached[min(leaves, key=lambda path: _order(policy, path, cached[path], block_tokens))]
    return found


def _order(policy: EvictionPolicy, path: Path, stats: Stats, block_tokens: int) -> tuple[object, int, int]:
    depth = len(path) - 1
    entry = CachedBlock(stats.created, stats.last_used, stats.hits, 0, block_tokens, depth * block_tokens)
    return policy.rank(entry), stats.last_used, -depth


def most_hits(requests: list[list[int]], num_blocks: int) -> int:
    """The most blocks that any choice of what to keep can find: all choices are tried."""

    @cache
    def best(number: int, kept: frozenset[Path]) -> int:
        if number == len(requests):
            return 0
        asked = paths(requests[number])
        found = next((i for i, path in enumerate(asked) if path not in kept), len(asked))
        return found + max(best(number + 1, rest) for rest in _subsets(kept | set(asked), num_blocks))

    return best(0, frozenset())


def _subsets(blocks: frozenset[Path], most: int) -> list[frozenset[Path]]:
    subsets = [frozenset[Path]()]
    for block in blocks:
        subsets += [subset | {block} for subset in subsets if len(subset) < most]
    return subsets
