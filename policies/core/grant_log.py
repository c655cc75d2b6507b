"""Changes of block tables since the plan before, where an executor asks for them."""

from __future__ import annotations

from .plan import Grant
from .sequence import Sequence


class GrantLog:
    """Grants in the order in which they were made; each plan takes away those that there are."""

    def __init__(self) -> None:
        self._grants: list[Grant] = []
        self._hollow: list[int] = []

    def add(self, sequence: Sequence, start: int, blocks: list[int]) -> None:
        """From index `start` on the sequence's table reads `blocks`, a list that nobody changes any more."""
        self._grants.append(Grant(sequence, start, blocks))

    def withdraw(self, sequence: Sequence) -> None:
        """The sequence has no table any more: nothing is told of what it was given since the plan before."""
        if self._grants:
            self._grants = [grant for grant in self._grants if grant.sequence is not sequence]

    def leave_hollow(self, blocks: list[int]) -> None:
        """These blocks stand in the prefix index, and what they are to hold will not be computed."""
        self._hollow += blocks

    def hand_over_hollow(self) -> list[int]:
        """All blocks left hollow since the plan before, which are forgotten here."""
        hollow, self._hollow = self._hollow, []
        return hollow

    def hand_over(self) -> list[Grant]:
        """All grants, which are forgotten here."""
        grants, self._grants = self._grants, []
        return grants
