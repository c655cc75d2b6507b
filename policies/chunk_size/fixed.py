"""A fixed number of prefill tokens a step."""

from __future__ import annotations

from ..protocols import EngineView
from ..registry import register


@register("chunk_size", "fixed")
class Fixed:
    """At most `tokens` prefill tokens a step, all requests together; decodes are not counted."""

    requires = ("chunked_prefill",)

    def __init__(self, tokens: int) -> None:
        if tokens < 1:
            raise ValueError(f"tokens: {tokens} is out of range; at least 1")
        self.tokens = tokens

    def step_tokens(self, view: EngineView) -> int | None:
        """`tokens`."""
        return self.tokens

    def request_tokens(self, view: EngineView) -> int | None:
        """No limit."""
        return None
