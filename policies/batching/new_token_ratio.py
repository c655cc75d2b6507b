"""The share of their outputs for which SGLang reserves memory: it sinks while decoding goes well."""

from __future__ import annotations

from collections.abc import Iterable

INITIAL = 0.7
LEAST = 0.14
"""Of the initial ratio."""
DECAY_STEPS = 600
RETRACT_STEPS = 20
"""Steps for which a retraction makes room."""


class NewTokenRatio:
    """`value` is the ratio; `conservativeness` scales it."""

    def __init__(self, conservativeness: float) -> None:
        self._initial = min(INITIAL * conservativeness, 1.0)
        self._least = min(self._initial * LEAST, 1.0)
        self._decay = (self._initial - self._least) / DECAY_STEPS
        self.value = self._initial

    def decay(self) -> None:
        """A decode step succeeded. A ratio that a retraction left below the least rises to it."""
        self.value = max(self.value - self._decay, self._least)

    def reset(self) -> None:
        """The engine is idle."""
        self.value = self._initial

    def after_retraction(self, kept: Iterable[tuple[int, int]]) -> None:
        """Some had to go: from what those `kept` have generated and may generate, (outputs, max_tokens) each."""
        outputs, most, count = 0, 0, 0
        for num_outputs, max_tokens in kept:
            outputs, most, count = outputs + num_outputs, most + max_tokens, count + 1
        self.value = min(1.0, (outputs + RETRACT_STEPS * count) / (most + 1)) if count else 0.0
