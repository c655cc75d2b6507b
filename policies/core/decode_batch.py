"""The persistent decode batch: sequences that gain one token a step cost nothing in a step in which nothing changes.

A member stores only a base: `computed = planned - base`, where `planned` counts the steps planned for the batch.
Two calendars say what a step touches:

    crossings[planned % block_size]   members that need a new block in the next step (base = planned, mod block_size)
    ends[number]                      members whose last token by length comes with that step of the batch

A member's tokens in flight are the batch's steps that were planned since it joined and are not committed.
"""

from __future__ import annotations

from bisect import bisect_right
from heapq import heapify, heappop, heappush

from .plan import Gap
from .sequence import Sequence


class DecodeBatch:
    """Members and their calendars. Sequences join when their prefill's last chunk is planned."""

    def __init__(self, block_size: int) -> None:
        self._block_size = block_size
        self.planned = 0
        self.committed = 0
        self.size = 0
        self.context_tokens = 0
        """Sum of the members' computed tokens."""
        self.last_commit_ns = 0
        self._crossings: list[dict[int, Sequence]] = [{} for _ in range(block_size)]
        self._ends: dict[int, dict[int, Sequence]] = {}
        self._end_numbers: list[int] = []
        self._longest: list[tuple[int, int, Sequence]] = []
        self._fresh: dict[int, Sequence] = {}  # members whose first step of the batch is not committed
        self._num_unmeasured = 0  # of the other members, those that were sent during the warm-up
        self._peaks: list[tuple[int, int]] = []  # (number, gap): each gap greater than all that came after it

    def join(self, sequence: Sequence) -> None:
        """Take in a sequence all of whose known tokens are computed, with a further token to come."""
        sequence.in_batch = True
        sequence.base = base = self.planned - sequence.computed
        sequence.joined = self.planned
        sequence.batch_end = end = self.planned + sequence.end - sequence.computed - 1
        self.size += 1
        self.context_tokens += sequence.computed
        self._crossings[base % self._block_size][sequence.admission] = sequence
        if end not in self._ends:
            self._ends[end] = {}
            heappush(self._end_numbers, end)
        self._ends[end][sequence.admission] = sequence
        if len(self._longest) > 2 * self.size + 64:
            self._longest = [entry for entry in self._longest if _is_current(entry)]
            heapify(self._longest)
        heappush(self._longest, (base, sequence.admission, sequence))
        self._fresh[sequence.admission] = sequence

    def leave(self, sequence: Sequence) -> int:
        """Let a member go, its own counts restored. Returns how many of its tokens the batch has in flight."""
        since = max(self.committed, sequence.joined)
        pending = self.planned - since
        if self.committed > sequence.joined:
            self._note_gaps(sequence)
        sequence.in_batch = False
        sequence.computed = self.planned - sequence.base
        sequence.in_flight += pending
        sequence.num_tokens = sequence.computed + 1 - sequence.in_flight
        self.size -= 1
        self.context_tokens -= sequence.computed
        del self._crossings[sequence.base % self._block_size][sequence.admission]
        ends = self._ends[sequence.batch_end]
        del ends[sequence.admission]
        if not ends:
            del self._ends[sequence.batch_end]
        if self._fresh.pop(sequence.admission, None) is None:
            self._num_unmeasured -= not sequence.is_measured
        if not self.size:
            self._peaks.clear()
        return pending

    def computed(self, sequence: Sequence) -> int:
        """Computed tokens of a member."""
        return self.planned - sequence.base

    def num_known(self, sequence: Sequence) -> int:
        """Prompt and output tokens of a member that are delivered."""
        in_flight = sequence.in_flight + self.planned - max(self.committed, sequence.joined)
        return self.computed(sequence) + 1 - in_flight

    def num_crossing(self) -> int:
        """Members that need a block in the next step."""
        return len(self._crossings[self.planned % self._block_size])

    def crossing(self) -> list[Sequence]:
        """Members that need a block in the next step, in order of admission."""
        return in_order(self._crossings[self.planned % self._block_size])

    def filling(self) -> list[Sequence]:
        """Members whose last block is full with the next step's token, in order of admission."""
        return in_order(self._crossings[(self.planned + 1) % self._block_size])

    def plan(self) -> None:
        """One more token for every member."""
        self.planned += 1
        self.context_tokens += self.size

    def ending(self) -> list[Sequence]:
        """Members whose last token was just planned; the caller lets them leave."""
        numbers = self._end_numbers
        while numbers and numbers[0] < self.planned:
            heappop(numbers)
        members = self._ends.get(self.planned)
        return list(members.values()) if members else []

    def steps_to_end(self) -> int:
        """Steps up to the first with which a member ends by length. The batch is not empty."""
        numbers = self._end_numbers
        while numbers[0] not in self._ends:
            heappop(numbers)
        return numbers[0] - self.planned

    def steps_within(self, num_blocks: int, num_steps: int) -> int:
        """Of so many next steps those that `num_blocks` blocks suffice for, whenever members need theirs."""
        if -(-num_steps // self._block_size) * self.size <= num_blocks:
            return num_steps
        return min(num_steps, num_blocks // self.size * self._block_size)

    def members(self) -> list[Sequence]:
        """All members."""
        return [sequence for bucket in self._crossings for sequence in bucket.values()]

    def max_context(self) -> int:
        """The largest context among the members."""
        heap = self._longest
        while heap and not _is_current(heap[0]):
            heappop(heap)
        return self.planned - heap[0][0] if heap else 0

    def commit(self, now_ns: int, num_members: int) -> list[Gap]:
        """Commit the oldest step in flight, of which `num_members` are members still.

        Returns the gaps since the last tokens of those that are measured.
        """
        self.committed += 1
        gap = now_ns - self.last_commit_ns
        gaps: list[Gap] = []
        num_common = num_members - self._num_unmeasured
        if self._fresh:
            first = [s for s in self._fresh.values() if s.joined < self.committed]
            num_common -= len(first)
            for sequence in first:
                del self._fresh[sequence.admission]
                self._num_unmeasured += not sequence.is_measured
                own_gap = now_ns - sequence.last_token_ns
                _widen(sequence, own_gap)
                if sequence.is_measured:
                    gaps.append((own_gap, 1))
        if num_common:
            gaps.append((gap, num_common))
        peaks = self._peaks
        while peaks and peaks[-1][1] <= gap:
            peaks.pop()
        peaks.append((self.committed, gap))
        self.last_commit_ns = now_ns
        return gaps

    def _note_gaps(self, sequence: Sequence) -> None:
        """Write down for a leaving member when its last token came and the longest gap that it saw as a member."""
        sequence.last_token_ns = self.last_commit_ns
        if self.committed - sequence.joined > 1:
            at = bisect_right(self._peaks, (sequence.joined + 2,))
            _widen(sequence, self._peaks[at][1])


def in_order(members: dict[int, Sequence]) -> list[Sequence]:
    """Members, keyed by admission, in its order."""
    if len(members) < 2:
        return list(members.values())
    return [members[key] for key in sorted(members)]


def _is_current(entry: tuple[int, int, Sequence]) -> bool:
    base, admission, sequence = entry
    return sequence.in_batch and sequence.base == base and sequence.admission == admission


def _widen(sequence: Sequence, gap_ns: int) -> None:
    record = sequence.record
    if record.max_gap_ns is None or gap_ns > record.max_gap_ns:
        record.max_gap_ns = gap_ns
