"""KV memory as it was before paging: at admission a sequence reserves one range for all that it may ever hold.

That is prompt and `max_tokens` less the last token, whose KV is never computed. The range cannot grow or move, and
nothing in it is shared; so decode never runs short, and memory is lost in two ways:

    internal fragmentation      reserved, but not used, or not used yet
    external fragmentation      free, but in holes too small for the request that waits

The scheme and the terms are those of Kwon et al., "Efficient Memory Management for Large Language Model Serving with
PagedAttention", SOSP 2023, section 3.1, except that the paper counts what a request will use later apart, as
"reserved", and that holes are filled first fit where its baseline has a buddy allocator.

Ranges are whole blocks, so that budget, limits and figures are in the unit of paged memory; that rounds a range up by
less than one block, and `block_size: 1` makes it exact.
"""

from __future__ import annotations

from collections.abc import Iterable

from .address_space import AddressSpace
from .decode_batch import DecodeBatch
from .grant_log import GrantLog
from .hash_blocks import NO_MATCH, Match
from .plan import Eviction
from .sequence import Sequence, State


class ContiguousMemory:
    """Ranges of blocks, one a running sequence."""

    caching = False
    num_shared_tokens = 0

    def __init__(self, num_blocks: int, block_size: int, *, grants: GrantLog | None = None) -> None:
        """With `grants` the ranges are told."""
        self.block_size = block_size
        self.pool = self.index = AddressSpace(1, num_blocks)
        self.evictions: list[Eviction] = []
        """Always empty."""
        self.grants = grants
        self._ranges: dict[Sequence, range] = {}

    # Nothing is cached

    def match(self, sequence: Sequence) -> Match:
        """Nothing."""
        return NO_MATCH

    def peek(self, sequence: Sequence) -> int:
        """No tokens."""
        return 0

    match_known = peek

    # Admission, the only time at which memory can be short

    def num_to_admit(self, sequence: Sequence, match: Match, num_tokens: int) -> int:
        """Blocks of its whole range, however few tokens it begins with."""
        return -(-(sequence.end - 1) // self.block_size)

    def has_room(self, num_blocks: int, num_spare: int) -> bool:
        """Whether a hole holds so many blocks, and `num_spare` blocks stay free, wherever they are."""
        return num_blocks <= self.pool.largest and num_blocks + num_spare <= self.pool.num_free

    def acquire(self, sequence: Sequence, match: Match) -> None:
        """Reserve the range."""
        assert sequence not in self._ranges, sequence
        self._ranges[sequence] = self.pool.take(self.num_to_admit(sequence, match, 0))
        if self.grants is not None:
            self.grants.add(sequence, 0, self.block_table(sequence))

    # Afterwards every token has its place

    def num_blocks_short(self, sequence: Sequence, num_tokens: int) -> int:
        """None."""
        return 0

    def num_needed(self, batch: DecodeBatch) -> int:
        """None."""
        return 0

    def crossing(self, batch: DecodeBatch) -> list[Sequence]:
        """Nobody."""
        return []

    def steps_that_fit(self, batch: DecodeBatch, num_steps: int) -> int:
        """All."""
        return num_steps

    def extend(self, sequence: Sequence, num_tokens: int, num_known: int, reason: str) -> None:
        """The tokens lie in the sequence's range."""
        assert num_tokens <= sequence.end - 1, (sequence, num_tokens)

    def make_room(self, num_tokens: int, by: str | None, reason: str) -> None:
        """Nothing can be evicted."""

    def advance(self, batch: DecodeBatch, *, is_ahead: bool) -> None:
        """Nothing changes hands."""

    def cross(self, sequence: Sequence, batch: DecodeBatch) -> None:
        """Nothing changes hands."""

    def fill(self, sequence: Sequence, num_tokens: int) -> None:
        """Nothing is entered."""

    def prefilled(self, sequence: Sequence, num_tokens: int) -> None:
        """Nothing is entered."""

    def delivered(self, sequence: Sequence, *, is_late: bool) -> None:
        """Nothing is entered."""

    # The end

    def num_held(self, sequence: Sequence) -> int:
        """Blocks of the sequence's range."""
        return len(self._ranges[sequence])

    def finish(self, sequence: Sequence) -> None:
        """Free the range."""
        if self.grants is not None:
            self.grants.withdraw(sequence)
        self.pool.release(self._ranges.pop(sequence))

    release = finish

    def block_table(self, sequence: Sequence) -> list[int]:
        """Ids of the sequence's blocks in order of their tokens."""
        return list(self._ranges[sequence])

    def check_integrity(self, sequences: Iterable[Sequence], batch: DecodeBatch) -> None:
        """Assert that exactly those that run hold a range, and that ranges and holes are all there is."""
        running = {sequence for sequence in sequences if sequence.state is State.RUNNING}
        assert self._ranges.keys() == running, (len(self._ranges), len(running))
        for sequence, held in self._ranges.items():
            computed = batch.computed(sequence) if sequence.in_batch else sequence.computed
            assert computed <= len(held) * self.block_size, (sequence, held)
        self.pool.check_integrity(self._ranges.values())
