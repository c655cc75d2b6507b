"""Runs, leases and splits keep the same blocks in the same places as an account of single blocks does."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, precondition, rule

from llmsim.policies.core.kv_cache import KVCache
from llmsim.policies.core.records import RequestRecord
from llmsim.policies.core.request import Prompt, Request
from llmsim.policies.core.sequence import Sequence
from llmsim.policies.eviction.lru import Lru

Chain = tuple[int, ...]
"""All tokens up to the end of a block: what the block's content stands for."""


@dataclass
class PlainCache:
    """A block at a time: who uses it, what it holds, in which order it will go."""

    num_blocks: int
    users: dict[int, int] = field(default_factory=dict)
    held: dict[Chain, list[int]] = field(default_factory=dict)
    """Blocks by content in order of entry."""
    content: dict[int, Chain] = field(default_factory=dict)
    idle: OrderedDict[int, None] = field(default_factory=OrderedDict)
    """Blocks with content and without users; the first is evicted first."""
    tables: dict[str, list[int]] = field(default_factory=dict)
    owner: dict[int, str] = field(default_factory=dict)
    """The sequence for which a block was last taken."""

    @property
    def num_free(self) -> int:
        return self.num_blocks - 1 - sum(1 for count in self.users.values() if count)

    def find(self, tokens: list[int], size: int, limit: int) -> list[int]:
        found = []
        for stop in range(size, limit * size + 1, size):
            copies = self.held.get(tuple(tokens[:stop]))
            if not copies:
                break
            found.append(copies[0])
        return found

    def share(self, name: str, found: list[int]) -> None:
        self.tables[name] = list(found)
        for block in found:
            self.users[block] += 1
            self.idle.pop(block, None)

    def take(self, name: str, taken: list[int]) -> list[str]:
        """The blocks `taken` were handed out; returns whose content went for it, in order."""
        blank = {block for block in taken if block not in self.content}
        num_evicted = len(taken) - len(blank)
        assert set(taken) - blank == set(list(self.idle)[:num_evicted]), "not the ones freed longest ago"
        assert not num_evicted or self.num_free - len(self.idle) == len(blank), "evicted while blank blocks were left"
        owners = []
        for block in list(self.idle)[:num_evicted]:
            owners.append(self.owner[block])
            copies = self.held[self.content.pop(block)]
            copies.remove(block)
            del self.idle[block]
        for block in taken:
            assert not self.users.get(block), f"block {block} is in use"
            self.users[block] = 1
            self.owner[block] = name
        self.tables[name] += taken
        return owners

    def enter(self, name: str, tokens: list[int], size: int, num_tokens: int) -> None:
        for index in range(num_tokens // size):
            block, chain = self.tables[name][index], tuple(tokens[: (index + 1) * size])
            if block not in self.content:
                self.content[block] = chain
                self.held.setdefault(chain, []).append(block)

    def release(self, name: str) -> None:
        for block in reversed(self.tables.pop(name)):
            self.users[block] -= 1
            if not self.users[block] and block in self.content:
                self.idle[block] = None


TOKENS = st.lists(st.integers(0, 1), min_size=1, max_size=14)


class PrefixCache(RuleBasedStateMachine):
    """Sequences come with a hit, grow, and go, in any order; memory is tight."""

    sequences: Bundle[str] = Bundle("sequences")

    @initialize(num_blocks=st.integers(2, 16), size=st.integers(1, 3))
    def start(self, num_blocks: int, size: int) -> None:
        self.size = size
        self.cache = KVCache(num_blocks, size, Lru(), caching=True)
        self.plain = PlainCache(num_blocks)
        self.live: dict[str, Sequence] = {}
        self.tokens: dict[str, list[int]] = {}
        self.count = 0

    @rule(target=sequences, tokens=TOKENS, continues=st.integers(0, 5), at=st.integers(0, 14), enters=st.booleans())
    def come(self, tokens: list[int], continues: int, at: int, enters: bool) -> str:
        """A new sequence, whose tokens may begin with another's; it is given its cached prefix and more blocks."""
        known = list(self.tokens.values())[-6:]
        if known:
            tokens = (known[continues % len(known)] + tokens)[: at + len(tokens)]
        name, self.count = f"s{self.count}", self.count + 1
        request = Request(name, 0, Prompt.of_tokens(tokens), 1, -1)
        sequence = Sequence(request, self.count, RequestRecord(name, None, None, 0, len(tokens), 0, 0))
        match = self.cache.match(sequence)
        found = self.plain.find(tokens, self.size, (len(tokens) - 1) // self.size)
        assert match.num_blocks == len(found)
        assert match.num_idle == sum(not self.plain.users[block] for block in found)
        self.cache.acquire(sequence, match)
        self.plain.share(name, found)
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
        owners = self.plain.take(name, table[len(before) :])
        told = [eviction.owner for eviction in self.cache.evictions for _ in range(eviction.num_blocks)]
        assert told == owners
        assert all((e.by, e.reason) == (name, "prefill") for e in self.cache.evictions)
        self.cache.evictions = []
        self.plain.enter(name, self.tokens[name], self.size, min(num_tokens, num_known))

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
                self.plain.enter(name, self.tokens[name], self.size, filled)

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
            assert match.num_blocks == len(self.plain.find(tokens, self.size, (len(tokens) - 1) // self.size))

    @invariant()
    def all_blocks_are_where_they_belong(self) -> None:
        self.cache.check_integrity(self.live.values())
        assert self.cache.pool.num_free == self.plain.num_free
        assert self.cache.index.num_evictable == len(self.plain.idle)
        for name, sequence in self.live.items():
            assert self.cache.block_table(sequence) == self.plain.tables[name]

    @invariant()
    def what_a_sequence_uses_is_never_evicted(self) -> None:
        for name, table in self.plain.tables.items():
            for index, block in enumerate(table):
                if block in self.plain.content:
                    chain = tuple(self.tokens[name][: (index + 1) * self.size])
                    assert self.plain.content[block] == chain


TestPrefixCache = PrefixCache.TestCase
TestPrefixCache.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)


@pytest.mark.parametrize("first", range(0, 100, 25))
def test_long_lives_agree_with_single_blocks(first: int) -> None:
    """What Hypothesis seldom reaches by chance: copies of long contents, split and evicted one by one."""
    for seed in range(first, first + 25):
        random, machine = Random(seed), PrefixCache()
        machine.start(random.choice((6, 12, 24)), random.choice((1, 1, 2, 3)))
        for _ in range(80):
            random_operation(machine, random)
            machine.all_blocks_are_where_they_belong()
            machine.what_a_sequence_uses_is_never_evicted()
        machine.look(0)


def random_operation(machine: PrefixCache, random: Random) -> None:
    kind = random.choice(("come", "come", "catch_up", "generate", "go", "grow"))
    if kind == "come" or not machine.live:
        tokens = [random.randrange(2) for _ in range(random.randint(1, 6))]
        machine.come(tokens, random.randrange(6), random.randrange(14), random.random() < 0.5)
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
