"""Why requests waited: charged to reasons as time passes, at a cost that does not grow with the queue.

What blocked the first of the queue is known at every step. Slots and budgets keep all others out as well; behind one
that lacks memory they wait for its turn (`order`). So two sums of time by reason suffice, one for whoever is first and
one for those behind; a request reads them when it arrives, becomes first, and is admitted.
"""

from __future__ import annotations

from .records import Blocked
from .sequence import Sequence, State
from .waiting_queue import WaitingQueue

_REASONS = tuple(Blocked)
_INDEX = {reason: i for i, reason in enumerate(_REASONS)}
_ORDER = _INDEX[Blocked.ORDER]
_SHARED = {Blocked.SLOTS, Blocked.BUDGET, Blocked.CHUNK}


class WaitClock:
    """Sums of waiting time by reason."""

    def __init__(self) -> None:
        self._reason: Blocked | None = None  # what kept the first of the queue out at the latest step
        self._since_ns = 0
        self._first = [0] * len(_REASONS)
        self._behind = [0] * len(_REASONS)
        self._leader: Sequence | None = None

    def arrived(self, sequence: Sequence, now_ns: int) -> None:
        """The engine sees a request for the first time; it joins the queue."""
        self.charge(now_ns)
        sequence.seen_ns = now_ns
        sequence.wait_mark = tuple(self._behind)

    def charge(self, now_ns: int) -> None:
        """Time passed: charge it to what blocked the queue."""
        elapsed = now_ns - self._since_ns
        self._since_ns = now_ns
        if elapsed and self._reason is not None:
            index = _INDEX[self._reason]
            self._first[index] += elapsed
            self._behind[index if self._reason in _SHARED else _ORDER] += elapsed

    def admitted(self, sequence: Sequence, now_ns: int) -> None:
        """Write down what a request waited for, before its first admission."""
        record = sequence.record
        arrived_ns = sequence.request.arrival_ns
        record.blocked_ns = now_ns - arrived_ns
        if not record.blocked_ns:
            return
        self._fold(sequence, self._first if sequence is self._leader else self._behind)
        waits = dict(sequence.waits or {})
        waits[Blocked.ARRIVAL] = sequence.seen_ns - arrived_ns
        record.blocked_by = max(_REASONS, key=lambda reason: waits.get(reason, 0))

    def settle(self, queue: WaitingQueue, reason: Blocked | None) -> None:
        """A step is planned: note who is first now and what keeps it out."""
        self._reason = reason
        first, leader = queue.first(), self._leader
        if first is leader:
            return
        if leader is not None and leader.state is State.WAITING:
            self._fold(leader, self._first)
            leader.wait_mark = tuple(self._behind)
        if first is not None and first.state is State.WAITING:
            self._fold(first, self._behind)
            first.wait_mark = tuple(self._first)
        self._leader = first

    def _fold(self, sequence: Sequence, sums: list[int]) -> None:
        waits = sequence.waits or {}
        for reason, now, before in zip(_REASONS, sums, sequence.wait_mark, strict=True):
            if now > before:
                waits[reason] = waits.get(reason, 0) + now - before
        sequence.waits = waits
