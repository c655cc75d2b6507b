"""The oracle that the fast core is tested against: a case in, the decision log of golden/README.md out."""

from __future__ import annotations

from collections import Counter, deque
from typing import Any

from .plain_request import PlainRequest, PlainStep, request_of
from .plain_scheduler import PlainScheduler

QUIET_LINES = 3
"""More lines in a row than these, without a token and with something waiting, are a stall."""


def decision_log(case: dict[str, Any], seen: Counter[str] | None = None) -> list[dict[str, Any]]:
    """One line a scheduling call; `seen` is told how often the rarer things happened.

    Raises AssertionError if the case can never end, or if blocks got lost.
    """
    return PlainRun(case, Counter() if seen is None else seen).lines()


class PlainRun:
    """Drives a plain scheduler through a case, one scheduling call a step."""

    def __init__(self, case: dict[str, Any], seen: Counter[str]) -> None:
        requests = [request_of(entry, index) for index, entry in enumerate(case["requests"])]
        self.arrivals = deque(sorted(requests, key=lambda request: request.arrival_step))
        self.scheduler = PlainScheduler(case["config"], seen)
        self.num_blocks: int = case["config"]["num_blocks"]
        self.in_flight: deque[PlainStep] = deque()
        self.queries = self.hits = 0  # of first admissions since the last line that told them
        self.has_news = False  # whether a request finished in the previous line

    def lines(self) -> list[dict[str, Any]]:
        """Run the case to its end."""
        lines: list[dict[str, Any]] = []
        number = 0
        while self.arrivals or self._is_busy():
            self._add_arrivals(number)
            if self._is_busy():
                lines.append({"step": number} | self._line())
                assert not self._is_stalled(lines[-QUIET_LINES:]), f"nothing moves at step {number}"
                number += 1
            else:
                self.in_flight.clear()
                number = self.arrivals[0].arrival_step
        assert self.scheduler.memory.num_free == self.num_blocks - 1, "blocks got lost"
        return lines

    def _is_busy(self) -> bool:
        return bool(self.scheduler.running or self.scheduler.waiting or self.has_news)

    def _add_arrivals(self, number: int) -> None:
        while self.arrivals and self.arrivals[0].arrival_step <= number:
            self.scheduler.add(self.arrivals.popleft())

    def _is_stalled(self, lines: list[dict[str, Any]]) -> bool:
        quiet = all(not line["scheduled"] and not line["finished"] for line in lines)
        return quiet and len(lines) == QUIET_LINES

    def _line(self) -> dict[str, Any]:
        memory, pool = self.scheduler.memory, self.scheduler.memory.pool
        num_evicted_before = pool.num_evicted
        step = self.scheduler.schedule()
        self._count_queries(step)
        line = self._describe(step) | {"num_evicted": pool.num_evicted - num_evicted_before}
        self.in_flight.append(step)
        line |= self._process_oldest()
        return line | {"free_blocks_end": memory.num_free}

    def _describe(self, step: PlainStep) -> dict[str, Any]:
        return {
            "scheduled": _by_id(step.scheduled),
            "new": _by_id(step.new),
            "resumed": _by_id(step.resumed),
            "preempted": [request.id for request in step.preempted],
            "spec": _by_id(step.drafts),
            "num_running": len(self.scheduler.running),
            "num_waiting": len(self.scheduler.waiting),
            "free_blocks": self.scheduler.memory.num_free,
        }

    def _count_queries(self, step: PlainStep) -> None:
        if self.scheduler.memory.is_caching:
            self.queries += sum(len(request.tokens) for request in step.new)
            self.hits += sum(step.new.values())

    def _process_oldest(self) -> dict[str, Any]:
        """Process the outputs that are due: of this step, or of the last one (asynchronous scheduling)."""
        if len(self.in_flight) <= self.scheduler.is_async:
            self.has_news = False
            return {"finished": []}
        finished = self.scheduler.update(self.in_flight.popleft())
        told = {"prefix_queries": self.queries, "prefix_hits": self.hits}
        self.queries = self.hits = 0
        self.has_news = bool(finished)
        return {"finished": [request.id for request in finished], **told}


def _by_id(counts: dict[PlainRequest, int]) -> dict[str, int]:
    return {request.id: count for request, count in counts.items()}
