"""A limit on what one request is given in a step."""

from __future__ import annotations

from ..protocols import EngineView
from ..registry import register


@register("chunk_size", "threshold")
class Threshold:
    """At most `tokens` tokens a request and step while others are there (vLLM's `long_prefill_token_threshold`)."""

    def __init__(self, tokens: int) -> None:
        if tokens < 1:
            raise ValueError(f"tokens: {tokens} is out of range; at least 1")
        self.tokens = tokens

    def step_tokens(self, view: EngineView) -> int | None:
        """No limit."""
        return None

    def request_tokens(self, view: EngineView) -> int | None:
        """`tokens`, unless the request is alone in the engine."""
        return self.tokens if view.num_running + view.num_waiting > 1 else None
