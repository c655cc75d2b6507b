"""Runs, leases and splits keep the same blocks in the same places as an account of single blocks does."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, precondition, rule

from llmsim.policies import registry
from llmsim.policies.core.cache_entry import CacheEntry
from llmsim.policies.core.decode_batch import DecodeBatch
from llmsim.policies.core.kv_cache import KVCache
from llmsim.policies.core.records import RequestRecord
from llmsim.policies.core.request import Prompt, Request
from llmsim.policies.core.sequence import Sequence
from llmsim.policies.protocols import EvictionPolicy
from llmsim.tests.support.plain_cache import PlainCache


class ShallowFirst:
    """What an index of prefixes cannot give: beginnings before what builds on them."""

    def rank(self, entry: CacheEntry) -> float:
        return entry.depth_tokens


class Erratic:
    """Every block as it comes."""

    def rank(self, entry: CacheEntry) -> float:
        return Random(f"{entry.created} {entry.last_used} {entry.depth_tokens}").random()


class LruByRank:
    """`lru` without its promise: the heap decides as the list does."""

    def rank(self, entry: CacheEntry) -> float:
        return entry.last_used


FANCIES: dict[str, type[EvictionPolicy]] = {
    "shallow first": ShallowFirst,
    "erratic": Erratic,
    "lru by rank": LruByRank,
}
EVICTIONS = [*registry.policies("eviction"), *FANCIES]
PREFER_WHAT_OTHERS_NEED = ("cost_aware", "shallow first", "erratic")
"""Of two blocks that entered together they may prefer the shallower."""
TOKENS = st.lists(st.integers(0, 1), min_size=1, max_size=14)


class PrefixCache(RuleBasedStateMachine):
    """Sequences come with a hit, grow, and go, in any order; memory is tight."""

    sequences: Bundle[str] = Bundle("sequences")

    @initialize(num_blocks=st.integers(2, 16), size=st.integers(1, 3), eviction=st.sampled_from(EVICTIONS))
    def start(self, num_blocks: int, size: int, eviction: str) -> None:
        self.size = size
        policy = FANCIES[eviction]() if eviction in FANCIES else registry.create("eviction", {"name": eviction})
        self.cache = KVCache(num_blocks, size, policy, caching=True)
        self.plain = PlainCache(num_blocks, size, policy, is_exact=eviction not in PREFER_WHAT_OTHERS_NEED)
        self.live: dict[str, Sequence] = {}
        self.tokens: dict[str, list[int]] = {}
        self.count = 0

    @rule(
        target=sequences,
        tokens=TOKENS,
        continues=st.integers(0, 5),
        at=st.integers(0, 14),
        enters=st.booleans(),
        priority=st.integers(-1, 1),
    )
    def come(self, tokens: list[int], continues: int, at: int, enters: bool, priority: int) -> str:
        """A new sequence, whose tokens may begin with another's; it is given its cached prefix and more blocks."""
        known = list(self.tokens.values())[-6:]
        if known:
            tokens = (known[continues % len(known)] + tokens)[: at + len(tokens)]
        name, self.count = f"s{self.count}", self.count + 1
        request = Request(name, 0, Prompt.of_tokens(tokens), 1, -1, priority)
        sequence = Sequence(request, self.count, RequestRecord(name, None, None, 0, len(tokens), 0, 0))
        match = self.cache.match(sequence)
        found = self.plain.find(tokens, (len(tokens) - 1) // self.size)
        assert match.num_blocks == len(found)
        assert match.num_idle == sum(not block.num_users for block in found)
        self.cache.acquire(sequence, match)
        self.plain.share(name, found, -priority)
        self.live[name], self.tokens[name] = sequence, tokens
        self.grow(name, len(tokens), len(tokens) if enters else 0)
        return name

    @rule(name=sequences, num_tokens=st.integers(1, 30), num_known=st.integers(0, 30))
    def grow(self, name: str, num_tokens: int, num_known: int) -> None:
        """It gets blocks for more tokens, and what is full of those that are known is entered."""
        sequence = self.live[name]
        num_known = min(num_known, len(self.tokens[name]))
        short = max(0, self.cache.num_blocks_short(sequence, num_tokens))
        assert short == max(0, -(-num_tokens // self.size) - len(self.plain.tables[name]))
        if short > self.cache.pool.num_free:
            return
        before = self.cache.block_table(sequence)
        self.cache.extend(sequence, num_tokens, num_known, "prefill")
        table = self.cache.block_table(sequence)
        assert table[: len(before)] == before
        told = [eviction.owner for eviction in self.cache.evictions for _ in range(eviction.num_blocks)]
        self.plain.take(name, table[len(before) :], told)
        assert all((e.by, e.reason) == (name, "prefill") for e in self.cache.evictions)
        self.cache.evictions = []
        self.plain.enter(name, self.tokens[name], min(num_tokens, num_known), -sequence.request.priority)

    @rule(name=sequences)
    def catch_up(self, name: str) -> None:
        """All that is full is entered."""
        self.grow(name, len(self.tokens[name]), len(self.tokens[name]))

    @rule(name=sequences, tokens=st.lists(st.integers(0, 1), min_size=1, max_size=5))
    def generate(self, name: str, tokens: list[int]) -> None:
        """It generates tokens; a block that is filled enters as in the decode batch."""
        sequence = self.live[name]
        for token in tokens:
            sequence.stream.push([token])
            sequence.num_tokens += 1
            self.tokens[name] = [*self.tokens[name], token]
            self.grow(name, len(self.tokens[name]), 0)
            filled = (sequence.num_entered + 1) * self.size
            if len(sequence.private) == 1 and filled <= len(self.tokens[name]):
                self.cache.fill(sequence, filled)
                self.plain.enter(name, self.tokens[name], filled, -sequence.request.priority)

    @rule(name=consumes(sequences))
    def go(self, name: str) -> None:
        """It gives everything back."""
        self.cache.release(self.live.pop(name))
        self.plain.release(name)

    @precondition(lambda self: self.live)
    @rule(token=st.integers(0, 1))
    def look(self, token: int) -> None:
        """Looking changes nothing and finds what single blocks find."""
        for tokens in list(self.tokens.values()):
            tokens = [*tokens, token]
            request = Request("look", 0, Prompt.of_tokens(tokens), 1, -1)
            match = self.cache.match(Sequence(request, 0, RequestRecord("look", None, None, 0, 0, 0, 0)))
            assert match.num_blocks == len(self.plain.find(tokens, (len(tokens) - 1) // self.size))

    @invariant()
    def all_blocks_are_where_they_belong(self) -> None:
        self.cache.check_integrity(self.live.values(), DecodeBatch(self.size))
        assert self.cache.pool.num_free == self.plain.num_free
        assert self.cache.index.num_evictable == len(self.plain.idle)
        for name, sequence in self.live.items():
            assert self.cache.block_table(sequence) == [block.id for block in self.plain.tables[name]]

    @invariant()
    def what_a_sequence_uses_is_never_evicted(self) -> None:
        for name, table in self.plain.tables.items():
            for index, block in enumerate(table):
                assert block.num_users
                assert block.chain in (None, tuple(self.tokens[name][: (index + 1) * self.size]))


TestPrefixCache = PrefixCache.TestCase
TestPrefixCache.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)


@pytest.mark.parametrize("eviction", EVICTIONS)
def test_long_lives_agree_with_single_blocks(eviction: str) -> None:
    """What Hypothesis seldom reaches by chance: copies of long contents, split and evicted one by one."""
    for seed in range(30):
        random, machine = Random(f"{eviction} {seed}"), PrefixCache()
        machine.start(random.choice((6, 12, 24)), random.choice((1, 1, 2, 3)), eviction)
        for _ in range(80):
            random_operation(machine, random)
            machine.all_blocks_are_where_they_belong()
            machine.what_a_sequence_uses_is_never_evicted()
        machine.look(0)


def random_operation(machine: PrefixCache, random: Random) -> None:
    kind = random.choice(("come", "come", "catch_up", "generate", "go", "go", "grow"))
    if kind == "come" or not machine.live:
        tokens = [random.randrange(2) for _ in range(random.randint(1, 6))]
        machine.come(tokens, random.randrange(6), random.randrange(14), random.random() < 0.5, random.randint(-1, 1))
        return
    name = random.choice(list(machine.live))
    if kind == "generate":
        machine.generate(name, [random.randrange(2) for _ in range(random.randint(1, 5))])
    elif kind == "grow":
        machine.grow(name, random.randint(1, 30), random.randint(0, 30))
    elif kind == "catch_up":
        machine.catch_up(name)
    else:
        machine.go(name)
