"""What is still to come of a run in real time: arrivals, and clients that give up."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

from ..policies.core.intake import Intake
from ..policies.core.request import Arrival


class Agenda:
    """A calendar by due time; what is due at one nanosecond comes in the order in which it was noted.

    Those of `arrivals` that come at the same nanosecond were noted together.
    """

    def __init__(self, arrivals: Iterator[Arrival], ingress_ns: int) -> None:
        """`arrivals` come by themselves, in order of time; one of them is held at a time."""
        self._arrivals = arrivals
        self._ingress_ns = ingress_ns
        self._due: list[tuple[int, int, Arrival | str]] = []
        self._num_noted = 0
        self._next_number: int | None = None  # of the entry that is the next of `arrivals`
        self.num_arrivals = 0
        """Arrivals noted; 0: nobody will come any more, unless another's end sets it off."""
        self._draw()

    @property
    def next_ns(self) -> int:
        """When the next entry is due; there must be one."""
        return self._due[0][0]

    def arrive_at(self, due_ns: int, arrival: Arrival) -> None:
        """Note an arrival."""
        self.num_arrivals += 1
        self._note(due_ns, arrival)

    def give_up_at(self, due_ns: int, request_id: str) -> None:
        """Note that a client gives up then."""
        self._note(due_ns, request_id)

    def deliver(self, now_ns: int, intake: Intake) -> None:
        """Hand over all that is due."""
        due = self._due
        while due and due[0][0] <= now_ns:
            due_ns, number, item = heappop(due)
            if isinstance(item, str):
                intake.give_up(item)
                continue
            self.num_arrivals -= 1
            intake.inbox.append(item)
            if number == self._next_number:
                self._draw(due_ns, number)

    def _draw(self, last_ns: int = -1, last_number: int = -1) -> None:
        arrival = next(self._arrivals, None)
        self._next_number = None
        if arrival is None:
            return
        due_ns = arrival.time_ns + self._ingress_ns
        if due_ns == last_ns:
            self._next_number = last_number
            self.num_arrivals += 1
            heappush(self._due, (due_ns, last_number, arrival))
        else:
            self._next_number = self._num_noted
            self.arrive_at(due_ns, arrival)

    def _note(self, due_ns: int, item: Arrival | str) -> None:
        heappush(self._due, (due_ns, self._num_noted, item))
        self._num_noted += 1
