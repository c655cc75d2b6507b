"""The running list: who runs, in which order, and which of them stand outside the decode batch."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence as Items

from .decode_batch import DecodeBatch
from .plan import StepPlan
from .sequence import Sequence, State


class RunningList:
    """Running sequences by admission number, in its order but for those that were moved to the front.

    Each stands either in `loose` or in the decode batch.
    """

    def __init__(self, batch: DecodeBatch, in_flight: deque[StepPlan]) -> None:
        self.members: dict[int, Sequence] = {}
        """By admission number."""
        self.loose: dict[int, Sequence] = {}
        """Of these, the ones outside the decode batch."""
        self._batch = batch
        self._in_flight = in_flight
        self._num_admissions = 0
        self._front = 0
        self.left: list[Sequence] = []
        """Who has left the decode batch since the latest plan."""

    def put_in(self, sequence: Sequence) -> None:
        """Append a sequence."""
        self._num_admissions += 1
        sequence.admission = self._num_admissions
        sequence.state = State.RUNNING
        self.members[sequence.admission] = self.loose[sequence.admission] = sequence

    def take_out(self, sequence: Sequence) -> None:
        """Remove a sequence, out of the decode batch too."""
        if sequence.in_batch:
            self.leave_batch(sequence)
        del self.members[sequence.admission], self.loose[sequence.admission]

    def put_first(self, sequences: Items[Sequence]) -> None:
        """Move sequences outside the decode batch to the front, in this order."""
        self._front -= len(sequences)
        self._renumber(sequences, self._front)

    def put_last(self, sequences: Items[Sequence]) -> None:
        """Move sequences outside the decode batch to the end, in this order."""
        self._renumber(sequences, self._num_admissions + 1)
        self._num_admissions += len(sequences)

    def _renumber(self, sequences: Items[Sequence], first: int) -> None:
        for number, sequence in enumerate(sequences, first):
            del self.members[sequence.admission], self.loose[sequence.admission]
            sequence.admission = number
            self.members[number] = self.loose[number] = sequence

    def last_decode_admission(self) -> int:
        """The latest admission number in the decode batch; 0 if it is empty."""
        return next((key for key in reversed(self.members) if self.members[key].in_batch), 0)

    def join_batch(self, sequence: Sequence) -> None:
        """Let a sequence with a steady decode ahead join the decode batch."""
        del self.loose[sequence.admission]
        self._batch.join(sequence)

    def leave_batch(self, sequence: Sequence) -> None:
        """Take a member out of the decode batch; its tokens in flight are delivered to it alone."""
        pending = self._batch.leave(sequence)
        self.loose[sequence.admission] = sequence
        self.left.append(sequence)
        for plan in reversed(self._in_flight):
            if not pending:
                break
            if plan.batch_number is not None:
                plan.detached = [*plan.detached, sequence]
                pending -= 1

    def check_integrity(self) -> None:
        """Assert that each member stands in one place, under its number."""
        batch = self._batch
        assert len(self.loose) + batch.size == len(self.members), (len(self.loose), batch.size)
        for number, sequence in self.members.items():
            assert sequence.admission == number, (sequence, number)
            assert sequence.in_batch == (number not in self.loose), sequence
