"""The KV cache over a radix tree as sequences see it: what SGLang allocates, inserts and gives back, and when.

A sequence holds a lock on the tree's nodes down to `node` (its first `num_locked` tokens) and pages of its own behind
them. Memory is counted in pages: `ceil(computed / page)` of them are the sequence's or the tree's.

    prefill ends                  its computed tokens, floored to a page, enter the tree; the lock moves to their end
    a middle chunk                likewise, at the start of the next round
    decode                        nothing, until the request ends
    the request ends              prompt and outputs but the last enter, then the lock goes
    the request is retracted      what it had not entered is lost; the rest stays, unlocked
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..protocols import EvictionPolicy
from .decode_batch import DecodeBatch
from .grant_log import GrantLog
from .page_numbers import PageNumbers
from .page_pool import PagePool
from .plan import Eviction
from .radix_locks import RadixLocks
from .radix_node import Match as TreeMatch
from .radix_node import RadixNode
from .radix_tree import RadixTree
from .sequence import Sequence, State


class OutOfMemory(RuntimeError):
    """A step was composed that memory does not hold: the real engine ends here, too."""


class RadixMatch(NamedTuple):
    """A cached prefix, in the words of the step builder."""

    found: TreeMatch | None
    num_blocks: int


NOTHING = RadixMatch(None, 0)


class RadixCache:
    """Page pool and radix tree behind one door."""

    def __init__(
        self,
        num_blocks: int,
        page_size: int,
        eviction: EvictionPolicy,
        *,
        caching: bool,
        asks_generously: bool,
        keeps_urgent: bool = True,
        classic: bool = False,
        grants: GrantLog | None = None,
    ) -> None:
        """With `grants` pages have numbers, and changes of tables are told."""
        self.block_size = page_size
        self.caching = caching
        self.eviction = eviction
        self.tree = RadixTree(page_size, eviction, classic=classic)
        self.pool = self.index = PagePool(num_blocks - 1, page_size, self.tree)
        self.evictions: list[Eviction] = []
        """Since the list was last emptied; the core empties it once a step."""
        self.grants = grants
        self._numbers = None if grants is None else PageNumbers(num_blocks - 1, page_size, grants)
        self._locks = RadixLocks(self.tree, page_size, self._numbers, keeps_urgent=keeps_urgent)
        self.num_lookups = 0
        """Matches made for the order of the queue so far."""
        self._asks_generously = asks_generously and page_size > 1

    @property
    def num_shared_tokens(self) -> int:
        """Tokens that several sequences have locked: of each all who have but one."""
        return self.tree.num_shared

    # Look-ups

    def match(self, sequence: Sequence) -> RadixMatch:
        """The cached prefix of what the sequence must compute; a match refreshes the nodes on its path."""
        if not self.caching:
            return NOTHING
        found = self.tree.match(sequence.stream, sequence.num_tokens - 1, known=sequence.found)
        sequence.found = found.node
        return RadixMatch(found, found.num_tokens // self.block_size)

    def find(self, sequence: Sequence) -> TreeMatch:
        """The cached prefix of all known tokens, for an order of the queue; refreshes like any match."""
        self.num_lookups += 1
        found = self.tree.match(sequence.stream, sequence.num_tokens, known=sequence.found)
        sequence.found = found.node
        return found

    def match_known(self, sequence: Sequence) -> int:
        """Its tokens."""
        return self.find(sequence).num_tokens if self.caching else 0

    def peek(self, sequence: Sequence) -> int:
        """Tokens that a match would find; nothing changes."""
        return self.tree.peek(sequence.stream, sequence.num_tokens - 1, known=sequence.found) if self.caching else 0

    # Memory of running sequences

    def num_blocks_short(self, sequence: Sequence, num_tokens: int) -> int:
        """Pages that the sequence lacks to hold `num_tokens` tokens."""
        return -(-num_tokens // self.block_size) + -sequence.computed // self.block_size

    def num_to_admit(self, sequence: Sequence, match: RadixMatch, num_tokens: int) -> int:
        """Pages that the waiting sequence takes with its first `num_tokens` tokens."""
        return -(-num_tokens // self.block_size) - match.num_blocks + self._num_idle(match)

    def _num_idle(self, match: RadixMatch) -> int:
        """Pages of a cached prefix that nobody has locked: free until it is acquired."""
        num_tokens, node = 0, match.found.node if match.found is not None else None
        while node is not None and not node.num_locks:
            num_tokens, node = num_tokens + node.num_tokens, node.parent
        return num_tokens // self.block_size

    def has_room(self, num_blocks: int, num_spare: int) -> bool:
        """Whether so many pages can be handed out, with `num_spare` left."""
        return num_blocks <= self.pool.num_free - num_spare

    num_needed = staticmethod(DecodeBatch.num_crossing)
    """Pages that the decode batch needs in its next step."""
    crossing = staticmethod(DecodeBatch.crossing)
    """Members of the decode batch that need a page in its next step, in order of admission."""

    def steps_that_fit(self, batch: DecodeBatch, num_steps: int) -> int:
        """Of so many steps of the decode batch those that the free pages are certain to suffice for."""
        return batch.steps_within(self.pool.num_free, num_steps)

    def num_held(self, sequence: Sequence) -> int:
        """Pages that the sequence uses, those of its locked prefix included."""
        return -(-sequence.computed // self.block_size)

    def acquire(self, sequence: Sequence, match: RadixMatch) -> None:
        """Lock the matched prefix for a sequence that holds nothing."""
        self._locks.lock(sequence, match.found)

    def let_go(self, sequence: Sequence) -> None:
        """Undo `acquire`."""
        self._locks.unlock(sequence, sequence.num_locked)

    def extend(self, sequence: Sequence, num_tokens: int, num_known: int, reason: str) -> None:
        """Give the sequence pages for `num_tokens` tokens. The caller has made sure that enough are free."""
        short = self.num_blocks_short(sequence, num_tokens)
        if short > 0:
            self.take(short, sequence.id, reason)
            if self._numbers is not None:
                self._numbers.extend(sequence, short)

    def take(self, num_blocks: int, by: str | None, reason: str) -> None:
        """Pages for `by`, evicting what is missing; who was evicted is noted in `evictions`."""
        self.make_room(num_blocks * self.block_size, by, reason)
        self.pool.num_blank -= num_blocks
        assert self.pool.num_blank >= 0, num_blocks

    def make_room(self, num_tokens: int, by: str | None, reason: str) -> None:
        """Evict until so many tokens are blank, or nothing is left to evict."""
        short = num_tokens - self.pool.num_blank * self.block_size
        if short > 0 and self.tree.num_evictable:

            def note(node: RadixNode) -> None:
                owner = node.owner
                assert owner is not None, "the root is never evicted"
                self.evictions.append(Eviction(owner, by, node.num_tokens // self.block_size, reason))
                if self._numbers is not None:
                    self._numbers.evicted(node)

            num_pages = self.tree.evict(short, note) // self.block_size
            self.pool.num_blank += num_pages
            self.pool.num_evicted += num_pages

    def prepare_prefill(self, num_tokens: int, num_rows: int) -> None:
        """Make room for a prefill as the engine does: with pages of several tokens it asks for one more a row."""
        if self._asks_generously:
            self.make_room(num_tokens + num_rows * self.block_size, None, "prefill")

    def advance(self, batch: DecodeBatch, *, is_ahead: bool) -> None:
        """Give the decode batch the pages of its next step. Enough are free."""
        if self._asks_generously:
            self.make_room(batch.size * self.block_size, None, "decode")
        if num_crossing := batch.num_crossing():
            self.take(num_crossing, None, "decode")
            if self._numbers is not None:
                for sequence in batch.crossing():
                    self._numbers.extend(sequence, 1)

    def cross(self, sequence: Sequence, batch: DecodeBatch) -> None:
        """Give one member of the decode batch at a page boundary a page."""
        self.take(1, sequence.id, "decode")
        if self._numbers is not None:
            self._numbers.extend(sequence, 1)

    def fill(self, sequence: Sequence, num_tokens: int) -> None:
        """A member's page is full: nothing to do before it ends."""

    # What enters the tree

    def enter(self, sequence: Sequence, num_tokens: int) -> None:
        """Insert a running sequence's first tokens; its lock moves to their end, duplicates become blank."""
        if self.caching:
            end = num_tokens - num_tokens % self.block_size
            self.pool.num_blank += self._locks.move(sequence, end) // self.block_size

    def prefilled(self, sequence: Sequence, num_tokens: int) -> None:
        """The step that ended the sequence's prefill was committed."""
        self.enter(sequence, num_tokens)

    def delivered(self, sequence: Sequence, *, is_late: bool) -> None:
        """An output token was delivered: nothing enters before the end."""

    def finish(self, sequence: Sequence) -> None:
        """The sequence ended: what is known of its KV enters the tree, all else is given back."""
        num_held = self.num_held(sequence)
        if not self.caching:
            self.pool.num_blank += num_held
            self.let_go(sequence)
            return
        known = min(sequence.computed, sequence.num_tokens - 1)
        end = known - known % self.block_size
        num_matched = self._locks.insert(sequence, end).num_matched if end else 0
        self.pool.num_blank += num_held + (num_matched - sequence.num_locked - end) // self.block_size
        self._locks.unlock(sequence, end)

    def release(self, sequence: Sequence) -> None:
        """Take everything back from a sequence that gives way: its outputs do not enter the tree."""
        self.pool.num_blank += self.num_held(sequence) - sequence.num_locked // self.block_size
        self.let_go(sequence)

    def block_table(self, sequence: Sequence) -> list[int]:
        """Numbers of the sequence's pages in order of their tokens, where pages have numbers."""
        assert self._numbers is not None, "pages are counted, not numbered"
        return self._numbers.table(sequence)

    def check_integrity(self, sequences: Iterable[Sequence], batch: DecodeBatch) -> None:
        """Assert that pages are conserved and that the tree is whole."""
        own, sequences = 0, list(sequences)
        for sequence in sequences:
            computed = batch.computed(sequence) if sequence.in_batch else sequence.computed
            own += -(-computed // self.block_size) - sequence.num_locked // self.block_size
        self.tree.check_integrity()
        self.pool.check_integrity(own)
        if self._numbers is not None:
            running = [sequence for sequence in sequences if sequence.state is State.RUNNING]
            self._numbers.check_integrity(self.tree, running, self.pool.num_blank)
