"""From a plan to what a device needs for it: the tokens outside the decode batch, as arrays.

Tokens of a step stand in this order: the decode batch's, one each; further decodes (`singles`); chunks of prompts.
The decode batch needs nothing from the host; what follows it is the `tail`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..policies.core.plan import Row, StepPlan
from ..policies.core.sequence import Sequence
from .contents import Contents
from .mirror import Changes, Mirror
from .verification import Drafted, Proposer

Ints = NDArray[np.int64]


def nothing() -> Ints:
    """No numbers."""
    return np.zeros(0, np.int64)


@dataclass(slots=True)
class StepWork:
    """One step as a device carries it out. All arrays are int64."""

    step: int
    changes: Changes
    num_members: int
    """Of the decode batch."""
    num_singles: int = 0
    tail_tokens: Ints = field(default_factory=nothing)
    """Token ids of singles and chunks; 0 where only the device knows them."""
    tail_rows: Ints = field(default_factory=nothing)
    """Whose they are."""
    tail_positions: Ints = field(default_factory=nothing)
    unknown_at: Ints = field(default_factory=nothing)
    """Places in the tail of tokens that a step under way samples."""
    chunk_rows: Ints = field(default_factory=nothing)
    query_starts: Ints = field(default_factory=nothing)
    """Counted from the first chunk's first token; one more than there are chunks."""
    chunk_contexts: Ints = field(default_factory=nothing)
    """Tokens with this step's."""
    max_query_len: int = 0
    tail_samples: Ints = field(default_factory=nothing)
    """Places in the tail of the tokens after which one is sampled: of a row the last, and those before its drafts."""
    drafted: list[Drafted] = field(default_factory=list)

    @property
    def num_sampled(self) -> int:
        """Tokens that the step samples."""
        return self.num_members + len(self.tail_samples)

    @property
    def num_tokens(self) -> int:
        """Tokens that the step computes."""
        return self.num_members + len(self.tail_tokens)


class Stretch(NamedTuple):
    """The tokens of one row that the device computes."""

    row: Row
    start: int
    length: int


def step_work(
    plan: StepPlan, changes: Changes, mirror: Mirror, contents: Contents, propose: Proposer | None = None
) -> StepWork:
    """What the device has to do for a plan that `mirror` has followed. Drafts come from `propose`."""
    num_members = plan.num_decodes if plan.batch_number is not None else 0
    work = StepWork(plan.step, changes, num_members)
    if plan.rows:
        stretches = [_stretch(row, changes) for row in plan.rows]
        singles = [stretch for stretch in stretches if stretch.length == 1]
        chunks = [stretch for stretch in stretches if stretch.length > 1]
        work.num_singles = len(singles)
        _lay_out(work, [*singles, *chunks], mirror, contents, propose)
        _note_chunks(work, chunks, mirror)
    return work


def _stretch(row: Row, changes: Changes) -> Stretch:
    """What the plan says, and before it what stands in the prefix index without ever having been computed."""
    start = changes.redone.get(row.sequence.id, row.num_computed)
    return Stretch(row, start, row.num_computed + row.num_tokens - start)


def _lay_out(
    work: StepWork, stretches: list[Stretch], mirror: Mirror, contents: Contents, propose: Proposer | None
) -> None:
    lengths = np.array([stretch.length for stretch in stretches], np.int64)
    ends = np.cumsum(lengths)
    starts = np.array([stretch.start for stretch in stretches], np.int64)
    work.tail_rows = np.repeat(np.array([mirror.row(s.row.sequence) for s in stretches], np.int64), lengths)
    work.tail_positions = np.arange(ends[-1]) + np.repeat(starts - (ends - lengths), lengths)
    tokens = np.zeros(ends[-1], np.int64)
    unknown: list[int] = []
    samples: list[int] = []
    for stretch, end in zip(stretches, ends.tolist(), strict=True):
        row, known = stretch.row, _known(stretch, contents)
        tokens[end - stretch.length : end - stretch.length + len(known)] = known
        missing = stretch.length - row.num_drafts - len(known)
        assert missing in (0, 1), (row.sequence, stretch.start, stretch.length, len(known))
        if missing:
            unknown.append(end - 1)
        if row.num_drafts:
            assert propose is not None, f"{row.sequence} has drafts, and nobody proposes any"
            drafts = propose(row.sequence, row.num_drafts)
            tokens[end - row.num_drafts : end] = drafts
            work.drafted.append(Drafted(row.sequence, work.num_members + len(samples), drafts))
        if row.samples:
            samples += range(end - 1 - row.num_drafts, end)
    work.tail_tokens, work.unknown_at = tokens, np.array(unknown, np.int64)
    work.tail_samples = np.array(samples, np.int64)


def _known(stretch: Stretch, contents: Contents) -> Ints:
    """The tokens that the host knows: all but one that a step under way samples."""
    sequence: Sequence = stretch.row.sequence
    stop = min(stretch.start + stretch.length, sequence.num_tokens)
    return contents.tokens(sequence.stream, stretch.start, stop) if stop > stretch.start else nothing()


def _note_chunks(work: StepWork, chunks: list[Stretch], mirror: Mirror) -> None:
    lengths = [stretch.length for stretch in chunks]
    work.chunk_rows = np.array([mirror.row(stretch.row.sequence) for stretch in chunks], np.int64)
    work.query_starts = np.cumsum([0, *lengths])
    work.chunk_contexts = np.array([stretch.start + stretch.length for stretch in chunks], np.int64)
    work.max_query_len = max(lengths, default=0)
