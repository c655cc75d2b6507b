"""Draft tokens: guessed by someone, computed with the row's own token in one pass, kept as far as the model agrees.

drafts       d0  d1  d2           the row computes [last token, d0, d1, d2]
the model    g0  g1  g2  g3       d0 = g0, d1 = g1, d2 != g2: two accepted, and the request goes on with g0 g1 g2
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..policies.core.sequence import Sequence

Proposer = Callable[[Sequence, int], list[int]]
"""`(sequence, n) -> n` guesses of the tokens behind those that are known. Raises nothing."""


@dataclass(frozen=True, slots=True)
class Drafted:
    """A row with drafts."""

    sequence: Sequence
    first: int
    """Where among the tokens that the step samples its own stand; one more than drafts."""
    drafts: list[int]

    def num_accepted(self, tokens: list[int], stop_tokens: frozenset[int]) -> int:
        """Leading drafts that are what the model says at their places; none behind a stop token or the last token."""
        most = min(len(self.drafts), self.sequence.end - self.sequence.num_tokens - 1)
        for count, draft in enumerate(self.drafts[:most]):
            said = tokens[self.first + count]
            if said != draft or said in stop_tokens:
                return count
        return most


def verify(drafted: list[Drafted], tokens: list[int], stop_tokens: frozenset[int]) -> tuple[dict[str, int], list[int]]:
    """How many drafts of each request are accepted, and the places of the sampled tokens that count, in order."""
    accepted: dict[str, int] = {}
    void: set[int] = set()
    for row in drafted:
        count = accepted[row.sequence.id] = row.num_accepted(tokens, stop_tokens)
        void.update(range(row.first + count + 1, row.first + len(row.drafts) + 1))
    return accepted, [place for place in range(len(tokens)) if place not in void]
