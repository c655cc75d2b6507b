"""What a generator draws for each request, before it has a time and a name."""

from __future__ import annotations

from typing import Literal, NamedTuple

from ..schema_pacing import FactorMaxTokens, FixedMaxTokens

Span = tuple[int, int, int]


class Turn(NamedTuple):
    """A later turn of a session: what follows once the one before has ended."""

    pause_ns: int
    """From that end to the next request: somebody reads, thinks and types."""
    own_tokens: int
    output_tokens: int


class Patience(NamedTuple):
    """How long a client waits for an answer, and what it does then."""

    timeout_ns: int
    retries: int
    backoff_ns: int
    """Before the first retry; doubled before each next one."""


class Draft(NamedTuple):
    """A request: what it shares with others, then `own_tokens` of its own; and the turns that follow it."""

    shared: tuple[Span, ...]
    own_tokens: int
    output_tokens: int
    tenant: str | None = None
    turns: tuple[Turn, ...] | None = None
    """None for a request that belongs to no session."""
    max_tokens: Literal["exact"] | FixedMaxTokens | FactorMaxTokens = "exact"
    priority: int = 0
    patience: Patience | None = None
    """None: it waits for ever."""
    deadline_in_ns: int | None = None
    """From its arrival; None where it is the SLO's, or none."""
