"""The executor's own picture of what runs: a row for each running sequence, its blocks, who is in the decode batch.

The core is up to one plan ahead of the device; the mirror follows plan by plan and says what has changed, so that a
step in which nothing changes sends nothing to the device. Row 0 belongs to nobody: it pads graphs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..policies.core.plan import StepPlan
from ..policies.core.records import EventKind
from ..policies.core.sequence import Sequence, State

Ints = NDArray[np.int64]


@dataclass(slots=True)
class Copy:
    """KV blocks on their way to the host, or back."""

    sequence: Sequence
    blocks: Ints
    """On the device, in order of tokens. Of a copy back they take the last ones of those that the host has."""


@dataclass(slots=True)
class Changes:
    """What a plan changes on the device before its kernels run, in this order."""

    copies_out: list[Copy] = field(default_factory=list)
    dropped: list[Sequence] = field(default_factory=list)
    """What the host has of them is not needed any more."""
    new_rows: list[tuple[int, Sequence]] = field(default_factory=list)
    tables: list[tuple[int, list[int]]] = field(default_factory=list)
    """Flat index of the first entry, the blocks."""
    members: dict[int, int] = field(default_factory=dict)
    """Place in the decode batch: row, 0 for an empty place."""
    copies_in: list[Copy] = field(default_factory=list)
    redone: dict[str, int] = field(default_factory=dict)
    """Requests whose cached prefix is hollow from this token on: the step computes it too."""


class Mirror:
    """Rows, block tables and the decode batch, on the host."""

    def __init__(self, num_rows: int, max_blocks: int, block_size: int) -> None:
        """`num_rows` sequences run at most, each with `max_blocks` blocks at most."""
        self.tables = np.zeros((num_rows + 1, max_blocks), np.int32)
        self.members = np.zeros(num_rows, np.int64)
        """Rows of the decode batch, in no order; 0 behind them."""
        self.owners: NDArray[np.object_] = np.full(num_rows + 1, None, object)
        """Whose row it is, or was last."""
        self.num_members = 0
        self._block_size = block_size
        self._free = list(range(num_rows, 0, -1))
        self._rows: dict[str, int] = {}
        self._places: dict[int, int] = {}  # row: its place in the decode batch
        self._moved: dict[int, int] = {}  # what has changed of `members` since the last plan
        self._on_host: dict[str, int] = {}  # blocks there, by request
        self._hollow: set[int] = set()  # blocks of the prefix index whose content was never computed
        self._joining: list[Sequence] = []
        self._ending: list[Sequence] = []

    def row(self, sequence: Sequence) -> int:
        """The row of a running sequence."""
        return self._rows[sequence.id]

    def forget(self, request_id: str) -> None:
        """A request does not run any more: its row may be given to another."""
        row = self._rows.pop(request_id, None)
        if row is not None:
            self._leave(row)
            self._free.append(row)

    def follow(self, plan: StepPlan) -> Changes:
        """Catch up with a plan, right after it was made."""
        changes = Changes()
        self._settle(plan)
        for swap in plan.swaps:
            if swap.kind is EventKind.SWAP_OUT:
                blocks = self.tables[self._rows[swap.sequence.id], : swap.num_blocks].astype(np.int64)
                changes.copies_out.append(Copy(swap.sequence, blocks))
                self._on_host[swap.sequence.id] = swap.num_blocks
            elif swap.kind is EventKind.SWAP_DROP:
                changes.dropped.append(swap.sequence)
                del self._on_host[swap.sequence.id]
        for preemption in plan.preempted:
            self.forget(preemption.sequence.id)
        for sequence in plan.aborted:
            self.forget(sequence.id)
        for admission in plan.admitted:
            if admission.sequence.state is State.RUNNING:
                self._admit(admission.sequence, changes)
        for grant in plan.grants:
            if (row := self._rows.get(grant.sequence.id)) is not None:
                self._grant(row, grant.start, grant.blocks, changes)
        if plan.hollow or self._hollow:
            self._fill_hollow(plan, changes)
        for swap in plan.swaps:
            if swap.kind is EventKind.SWAP_IN:
                changes.copies_in.append(self._copy_in(swap.sequence, swap.num_blocks))
        changes.members, self._moved = self._moved, {}
        assert plan.batch_number is None or self.num_members == plan.num_decodes, (self.num_members, plan.num_decodes)
        return changes

    def _settle(self, plan: StepPlan) -> None:
        """Let those join and leave the decode batch that do so before this plan; note those that do after it."""
        gone, self._ending = self._ending, []
        for sequence in self._joining:
            if (row := self._rows.get(sequence.id)) is not None:
                self._places[row] = self.num_members
                self._put(self.num_members, row)
                self.num_members += 1
        for sequence in plan.left:
            is_served = plan.batch_number == sequence.batch_end and sequence.state is State.RUNNING
            (self._ending if is_served else gone).append(sequence)
        for sequence in gone:
            if (row := self._rows.get(sequence.id)) is not None:
                self._leave(row)
        self._joining = list(plan.joined)

    def _leave(self, row: int) -> None:
        """Take a row out of the decode batch, if it is in it; the last member takes its place."""
        place = self._places.pop(row, None)
        if place is None:
            return
        self.num_members -= 1
        last = int(self.members[self.num_members])
        self._put(self.num_members, 0)
        if last != row:
            self._places[last] = place
            self._put(place, last)

    def _put(self, place: int, row: int) -> None:
        self.members[place] = row
        self._moved[place] = row

    def _admit(self, sequence: Sequence, changes: Changes) -> None:
        row = self._free.pop()
        self._rows[sequence.id] = row
        self.owners[row] = sequence
        changes.new_rows.append((row, sequence))

    def _grant(self, row: int, start: int, blocks: list[int], changes: Changes) -> None:
        self.tables[row, start : start + len(blocks)] = blocks
        changes.tables.append((row * self.tables.shape[1] + start, blocks))

    def _fill_hollow(self, plan: StepPlan, changes: Changes) -> None:
        """Let whoever is admitted onto hollow blocks compute them; blocks that are granted anew are written anyhow."""
        hollow, size = self._hollow, self._block_size
        hollow.update(plan.hollow)
        hits = {admission.sequence.id: admission.num_cached_tokens // size for admission in plan.admitted}
        for grant in plan.grants:
            hollow.difference_update(grant.blocks[max(0, hits.get(grant.sequence.id, 0) - grant.start) :])
        for request_id, num_hits in hits.items():
            if (row := self._rows.get(request_id)) is not None:
                blocks = self.tables[row, :num_hits].tolist()
                first = next((index for index, block in enumerate(blocks) if block in hollow), None)
                if first is not None:
                    changes.redone[request_id] = first * size
                    hollow.difference_update(blocks)

    def _copy_in(self, sequence: Sequence, num_blocks: int) -> Copy:
        """The host's last `num_blocks` blocks of the sequence go where its table says."""
        total = self._on_host.pop(sequence.id)
        blocks = self.tables[self._rows[sequence.id], total - num_blocks : total].astype(np.int64)
        return Copy(sequence, blocks)
