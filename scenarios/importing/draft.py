"""A scenario under way: its keys, which flag each came from, and what is to be told to people."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Draft:
    """What the commands have said so far."""

    keys: dict[str, Any] = field(default_factory=dict)
    """By path, `engine.max_num_seqs`; `workload` is one mapping, since its keys go together."""
    origins: dict[str, str] = field(default_factory=dict)
    """The flag, as it was written, by the path that it set."""
    assumed: dict[str, str] = field(default_factory=dict)
    """What the commands did not say, by its name: how it was filled in."""
    dropped: dict[str, str] = field(default_factory=dict)
    """What could not be carried over, by its name: why."""

    def set(self, path: str, value: Any, origin: str) -> None:
        """A key that a flag gives; a later flag wins."""
        self.keys[path] = value
        self.origins[path] = origin

    def assume(self, subject: str, how: str) -> None:
        """Take note of what was filled in."""
        self.assumed[subject] = how

    def not_carried(self, subject: str, why: str) -> None:
        """Take note of what was left out."""
        self.dropped[subject] = why

    def origin_of(self, where: str | None) -> str | None:
        """The flag behind the key that an error names, or behind the closest key above it."""
        path = where or ""
        while path and path not in self.origins:
            path = path.rpartition(".")[0]
        return self.origins.get(path)
