"""Whether memory lasts until all that run have ended, if each generates all it may: SGLang's check without a cache."""

from __future__ import annotations

from collections.abc import Iterable


class Completions:
    """Requests in the order in which they will end, as (tokens still to generate, tokens held)."""

    def __init__(self, states: Iterable[tuple[float, int]]) -> None:
        self._states = sorted((state for state in states if state[0] > 0), key=lambda state: state[0])

    def insert(self, tokens_left: float, tokens_held: int) -> None:
        """A further request: before the first that does not end earlier; before the last one if there is none."""
        if tokens_left <= 0:
            return
        states = self._states
        last = max(len(states) - 1, 0)
        at = next((i for i, state in enumerate(states) if tokens_left <= state[0]), last)
        states.insert(at, (tokens_left, tokens_held))

    def fit(self, free_tokens: float) -> bool:
        """Whether more than a token a request stays free up to each end."""
        freed = 0
        for i, (tokens_left, tokens_held) in enumerate(self._states):
            num_left = len(self._states) - i
            if free_tokens + freed - tokens_left * num_left <= num_left:
                return False
            freed += tokens_held
        return True
