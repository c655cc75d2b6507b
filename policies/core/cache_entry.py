"""What an eviction policy may know of a piece of cached content."""

from __future__ import annotations

from typing import Protocol


class CacheEntry(Protocol):
    """Cached content that is evicted as one; read-only. Times are counters of one index: later is larger."""

    @property
    def created(self) -> int:
        """When it was entered."""
        ...

    @property
    def last_used(self) -> int:
        """When it was last matched, entered again or released."""
        ...

    @property
    def hits(self) -> int:
        """How often its content was asked for, the first time included."""
        ...

    @property
    def priority(self) -> int:
        """The highest priority of those that entered it; the lowest goes first."""
        ...

    @property
    def num_tokens(self) -> int:
        """Tokens that it holds."""
        ...

    @property
    def depth_tokens(self) -> int:
        """Tokens of its prompt that lie before it."""
        ...
