"""As much prefill as the step's token budget holds."""

from __future__ import annotations

from ..protocols import EngineView
from ..registry import register


@register("chunk_size", "unlimited")
class Unlimited:
    """No limit beside the engine's own."""

    def step_tokens(self, view: EngineView) -> int | None:
        """No limit."""
        return None

    def request_tokens(self, view: EngineView) -> int | None:
        """No limit."""
        return None
