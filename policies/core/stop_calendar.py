"""Which requests stop by themselves with which step, for executors that know outputs beforehand."""

from __future__ import annotations

from heapq import heappop, heappush

from .plan import StepPlan
from .request import Output
from .sequence import Sequence


class StopCalendar:
    """Requests that generate all of `max_tokens` cost nothing: the core ends them.

    The others are entered, when they join the decode batch, by the batch's step numbers.
    """

    def __init__(self) -> None:
        self.lengths: dict[str, int] = {}
        """Of the outputs of requests that stop by themselves; empty: nobody does, and plans need not be shown."""
        self._stops: dict[int, list[tuple[Sequence, int]]] = {}
        self._stop_numbers: list[int] = []

    def expect(self, request_id: str, max_tokens: int, output: Output) -> None:
        """Learn what a request will really generate."""
        if output.length < max_tokens:
            self.lengths[request_id] = output.length

    def forget(self, request_id: str) -> None:
        """The request ended."""
        if self.lengths and self.lengths.pop(request_id, None) is not None and not self.lengths:
            self._stops.clear()
            self._stop_numbers.clear()

    def steps_to_stop(self, planned: int) -> int | None:
        """Steps of the decode batch after its step `planned` up to the first in which a request stops by itself."""
        while self._stop_numbers and self._stop_numbers[0] <= planned:
            heappop(self._stop_numbers)
        return self._stop_numbers[0] - planned if self._stop_numbers else None

    def stopped(self, plan: StepPlan) -> list[str]:
        """Requests whose last token comes with this step. To be called for every plan, right after it was made."""
        stopped: list[str] = []
        if plan.batch_number is not None:
            while self._stop_numbers and self._stop_numbers[0] < plan.batch_number:
                heappop(self._stop_numbers)
            for sequence, joined in self._stops.pop(plan.batch_number, ()):
                if sequence.in_batch and sequence.joined == joined:
                    stopped.append(sequence.id)
        for row in plan.rows:
            if row.samples:
                sequence = row.sequence
                left = self._left(sequence)
                if left == 0:
                    stopped.append(sequence.id)
                elif left is not None and sequence.in_batch:
                    self._enter(sequence.joined + left, sequence)
        return stopped

    def _enter(self, number: int, sequence: Sequence) -> None:
        """Note that a sequence which has just joined stops with the batch's step `number`."""
        if number not in self._stops:
            self._stops[number] = []
            heappush(self._stop_numbers, number)
        self._stops[number].append((sequence, sequence.joined))

    def _left(self, sequence: Sequence) -> int | None:
        """Tokens that it will still generate after those planned; None: as many as `max_tokens` lets it."""
        length = self.lengths.get(sequence.id)
        if length is None:
            return None
        return length - (sequence.num_tokens + sequence.in_flight - sequence.prompt_tokens)
