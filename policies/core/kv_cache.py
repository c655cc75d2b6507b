"""The paged KV cache as sequences see it: allocation, entry into the prefix index, release."""

from __future__ import annotations

from collections.abc import Iterable

from ..protocols import EvictionPolicy
from .block_pool import BlockPool
from .decode_batch import DecodeBatch
from .grant_log import GrantLog
from .hash_blocks import NO_MATCH, HashBlocks, Match
from .plan import Eviction
from .sequence import Sequence, State


class KVCache:
    """Block pool and prefix index behind one door.

    A sequence holds `leases` on blocks that are in the index (its first `num_entered`) and `private` blocks behind
    them, which are not full yet or whose tokens are not known yet.
    """

    def __init__(
        self,
        num_blocks: int,
        block_size: int,
        eviction: EvictionPolicy,
        *,
        caching: bool,
        grants: GrantLog | None = None,
    ) -> None:
        """With `grants` changes of tables are told."""
        self.block_size = block_size
        self.caching = caching
        self.index = HashBlocks(block_size, eviction)
        self.pool = BlockPool(num_blocks, self.index)
        self.evictions: list[Eviction] = []
        """Since the list was last emptied; the core empties it once a step."""
        self.grants = grants

    @property
    def num_shared_tokens(self) -> int:
        """Tokens in blocks that several sequences use: of each block all its users but one."""
        return self.index.num_shared * self.block_size

    def match(self, sequence: Sequence) -> Match:
        """The cached prefix of what the sequence must compute: at least its last known token is left out."""
        if not self.caching:
            return NO_MATCH
        return self.index.match(sequence.stream, (sequence.num_tokens - 1) // self.block_size)

    def peek(self, sequence: Sequence) -> int:
        """Tokens that a match finds."""
        return self.match(sequence).num_blocks * self.block_size

    match_known = peek
    """Looking hashed blocks up changes nothing."""

    def num_blocks_short(self, sequence: Sequence, num_tokens: int) -> int:
        """Blocks that the sequence lacks to hold `num_tokens` tokens."""
        return -(-num_tokens // self.block_size) - sequence.num_entered - len(sequence.private)

    def num_to_admit(self, sequence: Sequence, match: Match, num_tokens: int) -> int:
        """Free blocks that a waiting sequence takes with its first `num_tokens` tokens, idle ones of the match too."""
        return -(-num_tokens // self.block_size) - match.num_blocks + match.num_idle

    def has_room(self, num_blocks: int, num_spare: int) -> bool:
        """Whether so many blocks can be handed out, with `num_spare` left."""
        return num_blocks <= self.pool.num_free - num_spare

    num_needed = staticmethod(DecodeBatch.num_crossing)
    """Blocks that the decode batch needs in its next step."""
    crossing = staticmethod(DecodeBatch.crossing)
    """Members of the decode batch that need a block in its next step, in order of admission."""

    def steps_that_fit(self, batch: DecodeBatch, num_steps: int) -> int:
        """Of so many steps of the decode batch those that the free blocks are certain to suffice for."""
        return batch.steps_within(self.pool.num_free, num_steps)

    def acquire(self, sequence: Sequence, match: Match) -> None:
        """Give the matched prefix to a sequence that holds nothing."""
        assert not sequence.leases, sequence
        sequence.leases = self.index.acquire(match, -sequence.request.priority)
        sequence.num_entered = match.num_blocks
        if self.grants is not None and match.num_blocks:
            self.grants.add(sequence, 0, self.block_table(sequence))

    def extend(self, sequence: Sequence, num_tokens: int, num_known: int, reason: str) -> None:
        """Give the sequence blocks for `num_tokens` tokens, and enter what is full of its `num_known` first tokens.

        The caller has made sure that enough blocks are free.
        """
        short = self.num_blocks_short(sequence, num_tokens)
        if short > 0:
            ids = self.take(short, sequence.id, reason)
            if self.grants is not None:
                self.grants.add(sequence, self.num_held(sequence), ids)
            sequence.private += ids
        self.enter(sequence, min(num_tokens, num_known))

    def take(self, num_blocks: int, by: str | None, reason: str) -> list[int]:
        """Blocks for `by`; who was evicted for them is noted in `evictions`."""
        ids, evicted = self.pool.take(num_blocks)
        if evicted:
            self.evictions += [Eviction(owner, by, len(gone), reason) for owner, gone in evicted]
        return ids

    def make_room(self, num_tokens: int, by: str | None, reason: str) -> None:
        """Nothing: a block is evicted when it is taken."""

    def enter(self, sequence: Sequence, num_tokens: int) -> None:
        """Enter the full blocks of the first `num_tokens` tokens, as far as they are not in the index yet."""
        count = num_tokens // self.block_size - sequence.num_entered
        if count > 0 and self.caching:
            ids = sequence.private[:count]
            del sequence.private[:count]
            index, urgency = self.index, -sequence.request.priority
            index.enter(sequence.leases, sequence.stream, sequence.num_entered, ids, sequence.id, urgency)
            sequence.num_entered += count

    def fill(self, sequence: Sequence, num_tokens: int) -> None:
        """`enter` for a member of the decode batch whose last block is full with `num_tokens` tokens."""
        if not self.caching:
            return
        private, leases = sequence.private, sequence.leases
        if leases and len(private) == 1 and self.index.grow(leases[-1], sequence.stream, private, sequence.id):
            private.clear()
            sequence.num_entered += 1
        else:
            self.enter(sequence, num_tokens)

    def num_held(self, sequence: Sequence) -> int:
        """Blocks that the sequence uses, shared ones included."""
        return sequence.num_entered + len(sequence.private)

    def advance(self, batch: DecodeBatch, *, is_ahead: bool) -> None:
        """Give the decode batch the blocks of its next step, and enter those that it fills. Enough are free.

        `is_ahead`: a plan is in flight, so that the tokens which fill a block are not known yet.
        """
        if crossing := batch.crossing():
            self._cross(crossing, self.take(len(crossing), None, "decode"), batch.planned)
        if not is_ahead:
            for sequence in batch.filling():
                self.fill(sequence, batch.planned - sequence.base + 1)

    def cross(self, sequence: Sequence, batch: DecodeBatch) -> None:
        """Give one member of the decode batch at a block boundary a block."""
        self._cross([sequence], self.take(1, sequence.id, "decode"), batch.planned)

    def _cross(self, sequences: list[Sequence], ids: list[int], planned: int) -> None:
        """Give each sequence, a member of the decode batch at a block boundary, one block.

        A block that it filled before enters the index if that had to wait for its tokens (asynchronous scheduling).
        """
        if self.grants is not None:
            for sequence, block in zip(sequences, ids, strict=True):
                self.grants.add(sequence, self.num_held(sequence), [block])
        grow = self.index.grow
        for sequence, block in zip(sequences, ids, strict=True):
            private = sequence.private
            if private and self.caching:
                leases = sequence.leases
                if len(private) == 1 and leases and grow(leases[-1], sequence.stream, private, sequence.id):
                    sequence.num_entered += 1
                    private[0] = block
                    continue
                self.enter(sequence, planned - sequence.base)
            private.append(block)

    def prefilled(self, sequence: Sequence, num_tokens: int) -> None:
        """The step that ended its prefill was committed: its blocks entered when it was planned."""

    def delivered(self, sequence: Sequence, *, is_late: bool) -> None:
        """Its output is known up to the last token in flight. `is_late`: blocks may have waited for that."""
        if is_late and sequence.state is State.RUNNING:
            self.enter(sequence, sequence.computed - sequence.in_flight)

    def finish(self, sequence: Sequence) -> None:
        """Take everything back from a sequence that ended."""
        self.release(sequence)

    def release(self, sequence: Sequence) -> None:
        """Take everything back: what is in the index stays matchable until it is evicted."""
        if self.grants is not None:
            self.grants.withdraw(sequence)
            if (first := sequence.computed // self.block_size) < sequence.num_entered:  # a step's tokens are taken back
                self.grants.leave_hollow(self.block_table(sequence)[first : sequence.num_entered])
        self.pool.release(sequence.private)
        self.index.release(sequence.leases)
        sequence.private, sequence.leases, sequence.num_entered = [], [], 0

    def block_table(self, sequence: Sequence) -> list[int]:
        """Ids of the sequence's blocks in order of their tokens."""
        table: list[int] = []
        for lease in sequence.leases:
            for run in reversed(list(lease.runs_from_tail())):
                table += run.ids
        return table + sequence.private

    def check_integrity(self, sequences: Iterable[Sequence], batch: DecodeBatch) -> None:
        """Assert that blocks are conserved and that the index counts exactly the users that there are."""
        users: dict[int, int] = {}
        private: list[int] = []
        for sequence in sequences:
            private += sequence.private
            for lease in sequence.leases:
                for run in lease.runs_from_tail():
                    users[id(run)] = users.get(id(run), 0) + 1
        for run in self.index.runs():
            assert run.num_users == users.get(id(run), 0), (run.owner, run.num_users, users.get(id(run), 0))
        self.index.check_integrity()
        self.pool.check_integrity(private)
