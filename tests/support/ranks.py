"""Eviction orders of SGLang's radix tree for tests, and any other given by a key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from llmsim.policies import registry
from llmsim.policies.core.cache_entry import CacheEntry
from llmsim.policies.protocols import EvictionPolicy
from llmsim.scenarios.operation_reading import EVICTIONS


class Ranked(NamedTuple):
    """An eviction order given by a key."""

    rank: Callable[[CacheEntry], tuple[float, ...] | float]


RANKS: Mapping[str, EvictionPolicy] = {name: registry.create("eviction", {"name": name}) for name in EVICTIONS}
