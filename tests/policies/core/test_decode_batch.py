"""The batch's counters say of each member what counting for each member by itself says."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random

import pytest

from llmsim.policies.core.decode_batch import DecodeBatch
from llmsim.policies.core.records import RequestRecord
from llmsim.policies.core.request import Prompt, Request
from llmsim.policies.core.sequence import Sequence


@dataclass(eq=False)
class Member:
    """A sequence, counted by itself."""

    sequence: Sequence
    computed: int
    known: int
    """Tokens delivered, the prompt included."""
    times_ns: list[int]
    """When its tokens came."""
    in_flight: int = 0

    @property
    def max_gap_ns(self) -> int | None:
        return max((b - a for a, b in pairwise(self.times_ns)), default=None)


@dataclass
class PlainBatch:
    """A batch and its members; steps in flight are lists of who is in them."""

    block_size: int
    members: list[Member] = field(default_factory=list)
    gone: list[Member] = field(default_factory=list)
    pipe: deque[list[Member]] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.batch = DecodeBatch(self.block_size)
        self.num_admissions = 0

    def join(self, now_ns: int, num_prompt: int, max_tokens: int) -> None:
        """A prefill ended: its token came and one more at least is to come."""
        self.num_admissions += 1
        request = Request(f"s{self.num_admissions}", 0, Prompt([(1, 0, num_prompt)]), max_tokens, 2)
        sequence = Sequence(request, 0, RequestRecord(request.id, None, None, 0, num_prompt, 0, 0))
        sequence.admission, sequence.computed, sequence.num_tokens = self.num_admissions, num_prompt, num_prompt + 1
        sequence.last_token_ns = now_ns
        sequence.is_measured = self.num_admissions % 3 != 0
        self._take_in(Member(sequence, num_prompt, num_prompt + 1, [now_ns]))

    def rejoin(self, now_ns: int, member: Member) -> None:
        """A member that had left was given a token by itself and comes back."""
        self.gone.remove(member)
        sequence = member.sequence
        sequence.computed += 1
        sequence.num_tokens += 1
        member.computed += 1
        member.known += 1
        member.times_ns.append(now_ns)
        sequence.last_token_ns, sequence.record.max_gap_ns = now_ns, member.max_gap_ns
        self._take_in(member)

    def _take_in(self, member: Member) -> None:
        self.batch.join(member.sequence)
        self.members.append(member)

    def plan(self) -> None:
        """One more token for each; whose last it is leaves."""
        self.batch.plan()
        for member in self.members:
            member.computed += 1
            member.in_flight += 1
        self.pipe.append(list(self.members))
        ending = [m for m in self.members if m.computed == m.sequence.end - 1]
        assert set(self.batch.ending()) == {m.sequence for m in ending}
        for member in ending:
            self.leave(member)

    def commit(self, now_ns: int) -> None:
        """The oldest step's tokens come; those of who has left are delivered one by one."""
        there = []
        for member in self.pipe.popleft():
            member.in_flight -= 1
            member.known += 1
            member.times_ns.append(now_ns)
            if member in self.members:
                there.append(member)
            else:
                self._deliver_alone(member, now_ns)
        gaps: Counter[int] = Counter()
        for gap_ns, count in self.batch.commit(now_ns, len(there)):
            gaps[gap_ns] += count
        measured = [member for member in there if member.sequence.is_measured]
        assert gaps == Counter(member.times_ns[-1] - member.times_ns[-2] for member in measured)

    def _deliver_alone(self, member: Member, now_ns: int) -> None:
        sequence, record = member.sequence, member.sequence.record
        gap = now_ns - sequence.last_token_ns
        record.max_gap_ns = max(record.max_gap_ns or 0, gap)
        sequence.in_flight -= 1
        sequence.num_tokens += 1
        sequence.last_token_ns = now_ns

    def leave(self, member: Member) -> None:
        """It goes, its counts its own again."""
        pending = self.batch.leave(member.sequence)
        self.members.remove(member)
        self.gone.append(member)
        assert pending == member.in_flight
        self._check_alone(member)

    def _check_alone(self, member: Member) -> None:
        s = member.sequence
        assert (s.computed, s.num_tokens, s.in_flight) == (member.computed, member.known, member.in_flight)
        assert s.last_token_ns == member.times_ns[-1]
        assert s.record.max_gap_ns == member.max_gap_ns

    def check(self) -> None:
        """Every figure against the members'."""
        batch, members, size = self.batch, self.members, self.block_size
        assert batch.size == len(members) == len(batch.members())
        assert batch.context_tokens == sum(m.computed for m in members)
        assert batch.max_context() == max((m.computed for m in members), default=0)
        for member in members:
            assert batch.computed(member.sequence) == member.computed
            assert batch.num_known(member.sequence) == member.known
        ordered = sorted(members, key=lambda m: m.sequence.admission)
        assert batch.crossing() == [m.sequence for m in ordered if m.computed % size == 0]
        assert batch.num_crossing() == len(batch.crossing())
        assert batch.filling() == [m.sequence for m in ordered if (m.computed + 1) % size == 0]
        if members:
            assert batch.steps_to_end() == min(m.sequence.end - 1 - m.computed for m in members)


def random_life(seed: int, depth: int) -> PlainBatch:
    random = Random(seed)
    plain, now_ns = PlainBatch(random.choice((1, 2, 3, 16))), 0
    for _ in range(150):
        now_ns += random.choice((0, 1, 5, 30))
        kind = random.choice(("join", "plan", "plan", "commit", "commit", "leave", "rejoin"))
        if kind == "join":
            plain.join(now_ns, random.randint(1, 40), random.randint(2, 12))
        elif kind == "plan" and len(plain.pipe) < depth and plain.members:
            plain.plan()
        elif kind == "commit" and plain.pipe:
            plain.commit(now_ns)
        elif kind == "leave" and plain.members and random.random() < 0.5:
            plain.leave(random.choice(plain.members))
        elif kind == "rejoin":
            can = [m for m in plain.gone if not m.in_flight and m.computed + 2 < m.sequence.end]
            if can:
                plain.rejoin(now_ns, random.choice(can))
        plain.check()
    return plain


@pytest.mark.parametrize("depth", [1, 2])
def test_counters_say_what_counting_one_by_one_says(depth: int) -> None:
    for seed in range(60):
        random_life(seed, depth)


@pytest.mark.parametrize("depth", [1, 2])
def test_the_longest_gap_of_each_is_that_of_its_token_times(depth: int) -> None:
    num_gaps = 0
    for seed in range(100, 140):
        plain = random_life(seed, depth)
        for member in list(plain.members):
            plain.leave(member)
        while plain.pipe:
            plain.commit(1_000_000)
        for member in plain.gone:
            assert member.sequence.record.max_gap_ns == member.max_gap_ns
            num_gaps += member.max_gap_ns is not None
    assert num_gaps > 100


def test_a_batch_that_empties_and_fills_again_forgets_old_gaps() -> None:
    plain = PlainBatch(4)
    plain.join(0, 3, 3)
    plain.plan()
    plain.commit(1_000_000)
    plain.plan()
    plain.commit(1_000_001)
    assert not plain.members
    plain.join(1_000_002, 3, 9)
    for number in range(4):
        plain.plan()
        plain.commit(1_000_003 + number)
    member = plain.members[0]
    plain.leave(member)
    assert member.sequence.record.max_gap_ns == 1
