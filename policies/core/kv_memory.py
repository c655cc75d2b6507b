"""What the core asks of KV memory, whichever prefix index stands behind it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from ..protocols import EvictionPolicy
from .config import EngineConfig
from .contiguous import ContiguousMemory
from .decode_batch import DecodeBatch
from .grant_log import GrantLog
from .kv_cache import KVCache
from .plan import Eviction
from .radix_cache import RadixCache
from .sequence import Sequence


class AnyMatch(Protocol):
    """A cached prefix."""

    @property
    def num_blocks(self) -> int:
        """Whole blocks of it."""
        ...


class CountsFree(Protocol):
    """The memory itself."""

    num_evicted: int

    @property
    def num_free(self) -> int:
        """Blocks that can be handed out."""
        ...


class CountsEvictable(Protocol):
    """What is cached."""

    @property
    def num_evictable(self) -> int:
        """Cached blocks that nobody uses."""
        ...


class KVMemory(Protocol):
    """Blocks of running sequences and the prefix index: `KVCache` on hashed blocks, `RadixCache` on a radix tree.

    `ContiguousMemory` is a range of blocks a sequence without an index. The methods' meaning stands with these three.
    """

    # ruff: noqa: D102
    block_size: int
    caching: bool
    evictions: list[Eviction]
    grants: GrantLog | None

    @property
    def pool(self) -> CountsFree: ...
    @property
    def index(self) -> CountsEvictable: ...
    @property
    def num_shared_tokens(self) -> int: ...

    def match(self, sequence: Sequence) -> Any: ...
    def match_known(self, sequence: Sequence) -> int: ...
    def peek(self, sequence: Sequence) -> int: ...
    def num_blocks_short(self, sequence: Sequence, num_tokens: int) -> int: ...
    def num_held(self, sequence: Sequence) -> int: ...
    def num_to_admit(self, sequence: Sequence, match: Any, num_tokens: int) -> int: ...
    def has_room(self, num_blocks: int, num_spare: int) -> bool: ...
    def num_needed(self, batch: DecodeBatch) -> int: ...
    def crossing(self, batch: DecodeBatch) -> list[Sequence]: ...
    def steps_that_fit(self, batch: DecodeBatch, num_steps: int) -> int: ...
    def acquire(self, sequence: Sequence, match: Any) -> None: ...
    def extend(self, sequence: Sequence, num_tokens: int, num_known: int, reason: str) -> None: ...
    def make_room(self, num_tokens: int, by: str | None, reason: str) -> None: ...
    def advance(self, batch: DecodeBatch, *, is_ahead: bool) -> None: ...
    def cross(self, sequence: Sequence, batch: DecodeBatch) -> None: ...
    def fill(self, sequence: Sequence, num_tokens: int) -> None: ...
    def prefilled(self, sequence: Sequence, num_tokens: int) -> None: ...
    def delivered(self, sequence: Sequence, *, is_late: bool) -> None: ...
    def finish(self, sequence: Sequence) -> None: ...
    def release(self, sequence: Sequence) -> None: ...
    def block_table(self, sequence: Sequence) -> list[int]: ...
    def check_integrity(self, sequences: Iterable[Sequence], batch: DecodeBatch) -> None: ...


def kv_memory_of(config: EngineConfig, eviction: EvictionPolicy, *, tells_grants: bool = False) -> KVMemory:
    """The KV memory that an engine's configuration asks for; with `tells_grants` its blocks have numbers, always."""
    grants = GrantLog() if tells_grants else None
    if config.kv_reservation == "contiguous":
        return ContiguousMemory(config.num_blocks, config.block_size, grants=grants)
    caching = config.enable_prefix_caching
    if config.prefix_index == "radix_tree":
        return RadixCache(
            config.num_blocks,
            config.block_size,
            eviction,
            caching=caching,
            asks_generously=config.asks_generously,
            keeps_urgent=config.keeps_urgent,
            grants=grants,
        )
    return KVCache(config.num_blocks, config.block_size, eviction, caching=caching, grants=grants)
