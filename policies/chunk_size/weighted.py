"""Decodes weigh against prefill: the more of them run, the smaller the chunk."""

from __future__ import annotations

from ..protocols import EngineView
from ..registry import register


@register("chunk_size", "weighted")
class Weighted:
    """Prefill is given `max_num_batched_tokens` less `decode_weight` tokens a decode, but `least_tokens` at least.

    With weight 1 the step's budget is shared as without a limit; with weight w a chunk shrinks in a straight line and
    is at its least from (max_num_batched_tokens - least_tokens) / w decodes on.
    """

    requires = ("chunked_prefill",)

    def __init__(self, decode_weight: float, least_tokens: int = 16) -> None:
        for name, value, least in (("decode_weight", decode_weight, 1), ("least_tokens", least_tokens, 1)):
            if value < least:
                raise ValueError(f"{name}: {value} is out of range; at least {least}")
        self._weight = decode_weight
        self._least = least_tokens

    def step_tokens(self, view: EngineView) -> int | None:
        """A straight line down to the least."""
        left = view.max_num_batched_tokens - round(self._weight * view.outlook.num_decodes)
        return max(self._least, left)

    def request_tokens(self, view: EngineView) -> int | None:
        """No limit."""
        return None
