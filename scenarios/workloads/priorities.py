"""How urgent requests are: drawn by weight, one draw a request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat

from ..schema_pacing import PriorityWeight
from .draws import weighted


def priorities(choices: Sequence[PriorityWeight], seed: int) -> Iterator[int]:
    """Priorities, without end, with probabilities proportional to their weights."""
    levels = [choice.priority for choice in choices]
    if len(levels) == 1:
        return repeat(levels[0])
    return map(levels.__getitem__, weighted(seed, "priority", [choice.weight for choice in choices]))
