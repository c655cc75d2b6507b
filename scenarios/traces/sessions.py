"""A session of a trace: calls of which each begins some time after others have ended."""

from __future__ import annotations

from typing import NamedTuple

from ...policies.core.request import Prompt


class Call(NamedTuple):
    """One request of a session."""

    prompt: Prompt
    output_tokens: int
    after: tuple[tuple[int, int], ...] = ()
    """`(earlier call of the session, ns)`: it begins when that long has passed since the end of each. One that waits
    for nothing begins with the session."""


class TraceSession(NamedTuple):
    """Calls in an order in which each waits for earlier ones alone; none where nothing can be sent."""

    name: str | None
    first_index: int
    """How many calls come before in the file: names the first call's request and output, whenever it is sent."""
    calls: list[Call]
